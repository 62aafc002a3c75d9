package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

const (
	inFlight        = 256
	benchComponents = 100
	benchRound      = 4000 // events between two changes from one side to the other
)

// BenchmarkHTTPAppend appends confirm events over HTTP, one a request on connections that are kept, 256 under way, and
// compares with atomic batches of 100 of the same events written straight to the same server. Both take turns, so that
// whatever else the machine does falls on both.
func BenchmarkHTTPAppend(b *testing.B) {
	h := start(b, options{})
	grantAll(h)
	raw := newRawWriter(b, h)
	var connections []*connection
	for range inFlight {
		connections = append(connections, dial(b, h))
	}
	var overHTTP, straight time.Duration
	sent, rawSent := 0, 0
	b.ResetTimer()
	for sent < b.N {
		n := min(benchRound, b.N-sent)
		began := time.Now()
		postConfirms(b, connections, sent, n)
		overHTTP += time.Since(began)
		sent += n
		b.StopTimer()
		began = time.Now()
		raw.write(rawSent, benchRound)
		straight += time.Since(began)
		rawSent += benchRound
		b.StartTimer()
	}
	b.StopTimer()
	rate, rawRate := float64(sent)/overHTTP.Seconds(), float64(rawSent)/straight.Seconds()
	b.ReportMetric(rate, "appends/s")
	b.ReportMetric(rawRate, "raw/s")
	b.ReportMetric(rate/rawRate, "ratio")
}

// grantAll makes the confirms count: each is applied, and shown in the built-in bucket.
func grantAll(h *harness) {
	var grants []string
	for i := range benchComponents {
		grants = append(grants, fmt.Sprintf(`{"kind":"grant","group":"flink-1","component":"c%d","candidate":"jm-1","session":"S1"}`, i))
	}
	h.say(grants...)
}

func confirmText(i int) []byte {
	return fmt.Appendf(nil, `{"specversion":"1.0","id":"%d","source":"candidate/jm-1","type":"leadership.confirm.v1","subject":"flink-1/c%d",`+
		`"time":"2026-08-01T10:00:00Z","data":{"session":"S1","candidate":"jm-1","address":"http://10.0.0.1:%d","attempt":%d}}`,
		i, i%benchComponents, i, i+1)
}

func postConfirms(b *testing.B, connections []*connection, first, n int) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for _, c := range connections {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := c.post(confirmText(first + int(i) - 1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
}

// connection is one that is kept, without what a general client does beside: it is the server that is measured.
type connection struct {
	conn  net.Conn
	in    *bufio.Reader
	out   bytes.Buffer
	where string
}

func dial(b *testing.B, h *harness) *connection {
	where := strings.TrimPrefix(h.url, "http://")
	conn, err := new(net.Dialer).DialContext(b.Context(), "tcp", where)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, conn.Close()) })
	return &connection{conn: conn, in: bufio.NewReader(conn), where: where}
}

func (c *connection) post(event []byte) error {
	c.out.Reset()
	fmt.Fprintf(&c.out, "POST /v1/events HTTP/1.1\r\nHost: %s\r\nContent-Type: application/cloudevents+json\r\nContent-Length: %d\r\n\r\n%s",
		c.where, len(event), event)
	if _, err := c.conn.Write(c.out.Bytes()); err != nil {
		return err
	}
	return c.created()
}

// created reads an answer, which has to be a 201 with a length.
func (c *connection) created() error {
	status, err := c.in.ReadSlice('\n')
	if err != nil || !bytes.HasPrefix(status, []byte("HTTP/1.1 201 ")) {
		return fmt.Errorf("append: %q, %w", status, err)
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= len("\r\n") {
			_, err := c.in.Discard(length)
			return err
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
}

// rawWriter writes atomic batches of 100 to a stream of its own, configured as the journal's.
type rawWriter struct {
	b  *testing.B
	js jetstream.JetStream
}

func newRawWriter(b *testing.B, h *harness) *rawWriter {
	js := h.log.JetStream()
	journal, err := js.Stream(b.Context(), "LEADERSHIP")
	require.NoError(b, err)
	config := journal.CachedInfo().Config
	config.Name, config.Subjects, config.MaxBytes = "RAW", []string{"raw.>"}, -1
	_, err = js.CreateStream(b.Context(), config)
	require.NoError(b, err)
	return &rawWriter{b, js}
}

func (w *rawWriter) write(first, n int) {
	const size = 100
	for end := first + n; first < end; first += size {
		messages := make([]*nats.Msg, size)
		for i := range messages {
			id := first + i
			messages[i] = &nats.Msg{
				Subject: fmt.Sprintf("raw.flink-1.c%d.confirm", id%benchComponents), Data: confirmText(id),
				Header: nats.Header{jetstream.MsgIDHeader: {fmt.Sprintf("candidate/jm-1|%d", id)}},
			}
		}
		_, err := jetstreamext.PublishMsgBatch(w.b.Context(), w.js, messages, jetstreamext.BatchFlowControl{})
		require.NoError(w.b, err)
	}
}
