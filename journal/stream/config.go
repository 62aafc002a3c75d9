package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/leadership-journal/journald/journal"
)

const (
	subjects   = "leadership.>"
	window     = 2 * time.Minute // in which JetStream knows a message by its id
	maxMessage = journal.MaxSize + 4<<10
	unlimited  = -1
)

func (o *Options) streamConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: Name, Description: "the leadership journal", Subjects: []string{subjects},
		Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Replicas: o.Replicas,
		Discard: jetstream.DiscardNew, MaxBytes: o.MaxBytes, MaxMsgs: unlimited, MaxMsgsPerSubject: unlimited,
		MaxConsumers: unlimited, MaxMsgSize: maxMessage,
		DenyDelete: true, DenyPurge: true, AllowAtomicPublish: true, Duplicates: window,
	}
}

// openStream makes the stream, or checks and where asked enlarges the one that is there.
func (l *Log) openStream(ctx context.Context) error {
	want := l.opts.streamConfig()
	if l.opts.Existing {
		return l.findStream(ctx)
	}
	return l.persist(ctx, "open the stream", func(ctx context.Context) error {
		var err error
		if l.stream, err = l.js.Stream(ctx, Name); errors.Is(err, jetstream.ErrStreamNotFound) {
			l.stream, err = l.js.CreateStream(ctx, want)
		}
		if err != nil {
			return err
		}
		have := l.stream.CachedInfo().Config
		if wrong := weaknesses(&have, &want); len(wrong) > 0 {
			return &weakError{wrong}
		}
		if have.MaxBytes >= want.MaxBytes {
			return nil
		}
		l.logger.Info("journal enlarged", "from", have.MaxBytes, "to", want.MaxBytes)
		have.MaxBytes = want.MaxBytes
		l.stream, err = l.js.UpdateStream(ctx, have)
		return err
	})
}

// findStream checks the stream that is there.
func (l *Log) findStream(ctx context.Context) error {
	err := l.persist(ctx, "open the stream", func(ctx context.Context) (err error) {
		l.stream, err = l.js.Stream(ctx, Name)
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("there is no stream %s at %s: start a journald first, which makes it: %w", Name, l.nc.ConnectedUrlRedacted(), err)
	}
	if err != nil {
		return err
	}
	have := l.stream.CachedInfo().Config
	want := l.opts.streamConfig()
	if wrong := weaknesses(&have, &want); len(wrong) > 0 {
		return &weakError{wrong}
	}
	return nil
}

// weakError says why a stream is not fit to be the journal.
type weakError struct{ wrong []string }

func (e *weakError) Error() string {
	return "stream " + Name + " is weaker than the journal needs:\n  " + strings.Join(e.wrong, "\n  ")
}

// weaknesses lists what a stream promises less than wanted, each with what it means and what to do.
func weaknesses(have, want *jetstream.StreamConfig) []string {
	var wrong []string
	for _, r := range requirements(have, want) {
		if !r.ok {
			wrong = append(wrong, fmt.Sprintf("%s is %v, must be %v: %s; %s", r.field, r.have, r.must, r.because, r.do))
		}
	}
	return wrong
}

// requirement is one property that the stream must have.
type requirement struct {
	field   string // as in the stream's JSON configuration
	ok      bool
	have    any
	must    any
	because string
	do      string
}

func edit(flags string) string { return "run: nats stream edit " + Name + " " + flags }

const anew = "it can't be changed: copy the stream to a new one"

func requirements(have, want *jetstream.StreamConfig) []requirement {
	return slices.Concat(keeping(have, want), writing(have, want), plainness(have))
}

// keeping is what makes the journal permanent.
func keeping(h, w *jetstream.StreamConfig) []requirement {
	return []requirement{
		{"storage", h.Storage == jetstream.FileStorage, h.Storage, jetstream.FileStorage, "memory is lost with the server", anew},
		{"retention", h.Retention == jetstream.LimitsPolicy, h.Retention, jetstream.LimitsPolicy, "others drop what was read", anew},
		{"num_replicas", h.Replicas >= w.Replicas, h.Replicas, w.Replicas, "the configuration asks for them",
			edit(fmt.Sprintf("--replicas=%d", w.Replicas))},
		{"max_age", h.MaxAge == 0, h.MaxAge, 0, "old events would be dropped", edit("--max-age=0")},
		{"max_msgs", h.MaxMsgs <= 0, h.MaxMsgs, unlimited, "the size is bounded by max_bytes alone", edit("--max-msgs=-1")},
		{"max_msgs_per_subject", h.MaxMsgsPerSubject <= 0, h.MaxMsgsPerSubject, unlimited,
			"old events of a component would be dropped", edit("--max-msgs-per-subject=-1")},
		{"max_bytes", h.MaxBytes > 0, h.MaxBytes, w.MaxBytes, "a full disk can damage the stream",
			edit(fmt.Sprintf("--max-bytes=%d", w.MaxBytes))},
		{"discard", h.Discard == jetstream.DiscardNew, h.Discard, jetstream.DiscardNew,
			"a full journal would drop its oldest events", edit("--discard=new")},
		{"deny_delete", h.DenyDelete, h.DenyDelete, true, "events could be deleted", anew},
		{"deny_purge", h.DenyPurge, h.DenyPurge, true, "events could be purged", anew},
		{"allow_rollup_hdrs", !h.AllowRollup, h.AllowRollup, false, "a message could replace all before it", edit("--no-allow-rollup")},
		{"allow_msg_ttl", !h.AllowMsgTTL, h.AllowMsgTTL, false, "events could expire", anew},
		{"allow_msg_schedules", !h.AllowMsgSchedules, h.AllowMsgSchedules, false, "schedules turn deny_purge off", anew},
		{"persist_mode", h.PersistMode == jetstream.DefaultPersistMode, h.PersistMode, jetstream.DefaultPersistMode,
			"async acknowledges what is not on disk", anew},
	}
}

// writing is what appends rely on.
func writing(h, w *jetstream.StreamConfig) []requirement {
	return []requirement{
		{"subjects", slices.Equal(h.Subjects, w.Subjects), h.Subjects, w.Subjects, "events would be missing, or be others'",
			edit("--subjects='" + subjects + "'")},
		{"allow_atomic", h.AllowAtomicPublish, h.AllowAtomicPublish, true, "batches are all or nothing", edit("--allow-batch")},
		{"duplicate_window", h.Duplicates >= w.Duplicates, h.Duplicates, w.Duplicates, "a repeated event would be stored twice",
			edit("--dupe-window=" + w.Duplicates.String())},
		{"max_msg_size", h.MaxMsgSize <= 0 || h.MaxMsgSize >= w.MaxMsgSize, h.MaxMsgSize, w.MaxMsgSize,
			"valid events would be refused", edit(fmt.Sprintf("--max-msg-size=%d", w.MaxMsgSize))},
		{"no_ack", !h.NoAck, h.NoAck, false, "appends must be acknowledged", edit("--ack")},
		{"sealed", !h.Sealed, h.Sealed, false, "a sealed stream takes no event", anew},
		{"allow_direct", !h.AllowDirect, h.AllowDirect, false, "reads that decide must be answered by the leader",
			edit("--no-allow-direct")},
	}
}

// plainness is what keeps an event as it was sent.
func plainness(h *jetstream.StreamConfig) []requirement {
	return []requirement{
		{"mirror", h.Mirror == nil, "set", "unset", "a mirror takes no event", anew},
		{"sources", len(h.Sources) == 0, "set", "unset", "events would come in past the checks", edit("--no-source")},
		{"subject_transform", h.SubjectTransform == nil, "set", "unset", "events would be stored elsewhere than they say",
			edit("--transform-source='' --transform-destination=''")},
		{"republish", h.RePublish == nil, "set", "unset", "events could be seen before they are decided on", edit("--no-republish")},
		{"allow_msg_counter", !h.AllowMsgCounter, h.AllowMsgCounter, false, "counters rewrite what is sent", anew},
		{"first_seq", h.FirstSeq <= 1, h.FirstSeq, 1, "replay after a crash ignores it", anew},
	}
}
