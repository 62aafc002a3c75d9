// Package k8sworld runs scenarios against ConfigMaps of a real API server: journald's own adapter writes them, and
// the scenario's faults happen where the adapter's requests leave the process.
package k8sworld

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/cmd/journald/internal/sessions"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
	"github.com/leadership-journal/journald/scenario"
)

const (
	keyPrefix      = "org.apache.flink.k8s.leader."
	fence          = "leadership-journal.io/sequence"
	lockAnnotation = "control-plane.alpha.kubernetes.io/leader"
	touched        = "example.com/touched"
)

// Backend makes a ConfigMap in layout flink of every target, in one namespace. Names are new every time, so that
// scenarios do not meet each other's objects.
type Backend struct {
	config    *rest.Config
	namespace string
	maps      v1.ConfigMapInterface
	logger    *slog.Logger
}

// New is a backend in a namespace that exists.
func New(config *rest.Config, namespace string, logger *slog.Logger) (*Backend, error) {
	client, err := v1.NewForConfig(unlimited(config))
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", config.Host, err)
	}
	return &Backend{config: config, namespace: namespace, maps: client.ConfigMaps(namespace), logger: logger}, nil
}

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// Check implements [scenario.Backend]. A ConfigMap shows whatever a scenario is about.
func (b *Backend) Check(journal.Target, []string) error { return nil }

// Open implements [scenario.Backend].
func (b *Backend) Open(_ context.Context, group string, spec journal.Target) (scenario.Object, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fmt.Errorf("no name for the object of %s: %w", spec.Name, err)
	}
	spec.Kind, spec.Layout, spec.Namespace = k8s.ConfigMap, k8s.Flink, b.namespace
	spec.Object = "scenario-" + strings.ToLower(spec.Name) + "-" + id.String()
	return &object{Backend: b, group: group, spec: spec, names: sessions.Names{}}, nil
}

// object is one ConfigMap.
type object struct {
	*Backend
	group string
	spec  journal.Target
	names sessions.Names
}

// Target implements [scenario.Object].
func (o *object) Target() (projector.Target, error) {
	config := rest.CopyConfig(o.config)
	config.Wrap(gated)
	client, err := k8s.NewClient(config, k8s.Options{Now: time.Now, Logger: o.logger})
	if err != nil {
		return nil, err
	}
	target, err := client.Connect(o.group, o.spec)
	if err != nil {
		return nil, err
	}
	return o.names.Target(target), nil
}

// Show implements [scenario.Object].
func (o *object) Show(ctx context.Context, _ string) (scenario.State, error) {
	state := scenario.State{Entries: map[string]*journal.LeaderInfo{}}
	cm, err := o.maps.Get(ctx, o.spec.Object, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		state.Revision, err = o.newest(ctx)
		return state, err
	}
	if err != nil {
		return state, fmt.Errorf("read %s: %w", o.spec.Object, err)
	}
	if state.Revision, err = strconv.ParseUint(cm.ResourceVersion, 10, 64); err != nil {
		return state, fmt.Errorf("read %s: %w", o.spec.Object, err)
	}
	if text := cm.Annotations[fence]; text != "" {
		if state.Sequence, err = strconv.ParseUint(text, 10, 64); err != nil {
			return state, fmt.Errorf("read the fence of %s: %w", o.spec.Object, err)
		}
	}
	for key, value := range cm.Data {
		if component, ok := strings.CutPrefix(key, keyPrefix); ok {
			session, address, _ := strings.Cut(value, ",")
			id, err := uuid.Parse(session)
			if err != nil {
				return state, fmt.Errorf("read %s of %s: %w", key, o.spec.Object, err)
			}
			state.Entries[component] = &journal.LeaderInfo{Session: o.names[id], Address: address}
		}
	}
	return state, nil
}

// newest is the revision of the whole API server.
func (o *object) newest(ctx context.Context) (uint64, error) {
	list, err := o.maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + o.spec.Object})
	if err != nil {
		return 0, fmt.Errorf("list %s: %w", o.spec.Object, err)
	}
	return strconv.ParseUint(list.ResourceVersion, 10, 64)
}

// Write implements [scenario.Object].
func (o *object) Write(ctx context.Context, c scenario.Change) error {
	cm, err := o.maps.Get(ctx, o.spec.Object, metav1.GetOptions{})
	absent := apierrors.IsNotFound(err)
	if absent {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: o.spec.Object}}
	} else if err != nil {
		return fmt.Errorf("read %s: %w", o.spec.Object, err)
	}
	o.change(cm, c)
	if absent {
		_, err = o.maps.Create(ctx, cm, metav1.CreateOptions{})
	} else {
		_, err = o.maps.Update(ctx, cm, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("change %s: %w", o.spec.Object, err)
	}
	return nil
}

func (o *object) change(cm *corev1.ConfigMap, c scenario.Change) {
	if cm.Annotations == nil {
		cm.Annotations = map[string]string{}
	}
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Annotations[touched] = time.Now().Format(time.RFC3339Nano)
	switch {
	case c.Touch:
	case c.Entry == nil:
		delete(cm.Data, keyPrefix+c.Component)
	default:
		cm.Data[keyPrefix+c.Component] = o.names.UUID(c.Entry.Session).String() + "," + c.Entry.Address
	}
	if c.Sequence != 0 {
		cm.Annotations[fence] = strconv.FormatUint(c.Sequence, 10)
	}
	if o.spec.Guarded && !c.Touch {
		holder := c.Holder
		if holder == "" {
			holder = c.By
		}
		cm.Annotations[lockAnnotation] = fmt.Sprintf(`{"holderIdentity":%q,"leaseDuration":"PT15S","leaderTransitions":0}`, holder)
	}
}

// Drop implements [scenario.Object].
func (o *object) Drop(ctx context.Context) error {
	err := o.maps.Delete(ctx, o.spec.Object, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s: %w", o.spec.Object, err)
	}
	return nil
}

// Close implements [scenario.Object].
func (o *object) Close(ctx context.Context) error { return o.Drop(ctx) }
