package k8s

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// The kinds of target.
const (
	ConfigMap = "k8s/configmap" // layouts Flink and JSON
	Lease     = "k8s/lease"     // one for each component
)

// The layouts of a ConfigMap.
const (
	Flink = "flink" // key org.apache.flink.k8s.leader.<component>, value <session>,<address>
	JSON  = "json"  // key <component>, value the leader info
)

// Options are what a [Client] needs beside the way to the API server. All are required.
type Options struct {
	Now    func() time.Time // a Lease's acquireTime and renewTime; nothing is decided by it
	Logger *slog.Logger     // hears of watches that can't be had
}

// Client makes targets in one Kubernetes cluster. They share its connections.
type Client struct {
	opts     Options
	patience patience
	logger   logr.Logger                 // client-go's own
	rest     map[string]*rest.RESTClient // by kind
	turns    chan struct{}               // see turn
	reach    reach
}

// startsAtOnce is how many watches begin at the same time. Where thousands do, after an outage, each would open a
// connection of its own, and most would be thrown away.
const startsAtOnce = 32

// NewClient prepares the way to an API server; it does not connect. The rate limits and the time-out of the
// configuration are not used: the projector has its own.
func NewClient(config *rest.Config, opts Options) (*Client, error) {
	return newClient(config, opts, defaultPatience())
}

func newClient(config *rest.Config, opts Options, p patience) (*Client, error) {
	if config == nil || opts.Now == nil || opts.Logger == nil {
		return nil, errors.New("k8s: a configuration, a clock and a logger are needed")
	}
	c := &Client{
		opts: opts, logger: logr.FromSlogHandler(opts.Logger.Handler()),
		rest: map[string]*rest.RESTClient{}, turns: make(chan struct{}, startsAtOnce), patience: p,
	}
	config = rest.CopyConfig(config)
	config.Timeout, config.QPS, config.RateLimiter = 0, -1, nil
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	p.apply(config)
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare connections to %s: %w", config.Host, err)
	}
	for _, k := range kinds() {
		group := rest.CopyConfig(config)
		group.GroupVersion, group.APIPath = &k.version, k.path
		scheme := runtime.NewScheme()
		metav1.AddToGroupVersion(scheme, k.version)
		group.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		if c.rest[k.name], err = rest.RESTClientForConfigAndClient(group, http); err != nil {
			return nil, fmt.Errorf("prepare a client of %s: %w", config.Host, err)
		}
	}
	return c, nil
}

// Connect makes the target that a description means; it is a [projector.Connect]. It does no I/O. The error says that
// the description can't be served, as [Validate] does.
func (c *Client) Connect(group string, spec journal.Target) (projector.Target, error) {
	if err := Validate(group, spec); err != nil {
		return nil, err
	}
	t := &target{client: c, group: group, spec: spec, objects: map[string]*object{}, added: make(chan struct{})}
	if !t.PerComponent() {
		t.object("")
	}
	for _, component := range spec.Components {
		if t.PerComponent() {
			t.object(component)
		}
	}
	return t, nil
}

// context has client-go log to our logger.
func (c *Client) context(ctx context.Context) context.Context { return klog.NewContext(ctx, c.logger) }

// turn waits until a watch may begin. Its owner gives the turn back.
func (c *Client) turn(ctx context.Context) (back func(), err error) {
	select {
	case c.turns <- struct{}{}:
		return func() { <-c.turns }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// kind is a resource of the API.
type kind struct {
	name     string // of the target's kind
	path     string
	version  schema.GroupVersion
	resource string
	object   string // its kind, in the API's words
}

func kinds() []kind {
	return []kind{
		{ConfigMap, "/api", schema.GroupVersion{Version: "v1"}, "configmaps", "ConfigMap"},
		{Lease, "/apis", schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}, "leases", "Lease"},
	}
}

func kindOf(name string) (kind, bool) {
	for _, k := range kinds() {
		if k.name == name {
			return k, true
		}
	}
	return kind{}, false
}
