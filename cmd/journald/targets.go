package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leadership-journal/journald/adapters/k8s"
	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/config"
	"github.com/leadership-journal/journald/internal/nearest"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

func targetKinds() []string { return []string{k8s.ConfigMap, k8s.Lease, zk.Kind} }

// checkTarget says why a target can't be served, without asking anybody.
func checkTarget(group string, spec journal.Target) error {
	switch {
	case strings.HasPrefix(spec.Kind, "k8s/"):
		return k8s.Validate(group, spec)
	case spec.Kind == zk.Kind:
		return zk.Validate(group, spec)
	}
	return fmt.Errorf("target %s: kind %q is not in this version, which has %s%s", spec.Name, spec.Kind,
		strings.Join(targetKinds(), ", "), nearest.Hint(spec.Kind, targetKinds()))
}

// connector makes the targets that groups describe. A backend is looked for when the first target needs it.
type connector struct {
	ctx        context.Context // of what is made
	kubernetes config.Kubernetes
	zookeeper  config.ZooKeeper
	logger     *slog.Logger

	mu  sync.Mutex
	k8s *k8s.Client
	zk  *zk.Client
}

func (c *connector) connect(group string, spec journal.Target) (projector.Target, error) {
	if err := checkTarget(group, spec); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if spec.Kind == zk.Kind {
		return c.connectZooKeeper(group, spec)
	}
	return c.connectKubernetes(group, spec)
}

// connectKubernetes finds the way to the cluster. Where there is none yet it is looked for again the next time.
func (c *connector) connectKubernetes(group string, spec journal.Target) (projector.Target, error) {
	if c.k8s == nil {
		cluster, err := clusterConfig(c.kubernetes)
		if err != nil {
			return nil, err
		}
		if c.k8s, err = k8s.NewClient(cluster, k8s.Options{Now: time.Now, Logger: c.logger}); err != nil {
			return nil, err
		}
	}
	return c.k8s.Connect(group, spec)
}

func (c *connector) connectZooKeeper(group string, spec journal.Target) (projector.Target, error) {
	if c.zk == nil {
		options, err := zookeeperOptions(&c.zookeeper, c.logger)
		if err != nil {
			return nil, err
		}
		if c.zk, err = zk.NewClient(c.ctx, options); err != nil {
			return nil, err
		}
	}
	return c.zk.Connect(group, spec)
}

// close ends the connections that outlive the targets.
func (c *connector) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.zk != nil {
		c.zk.Close()
	}
}

// clusterConfig finds the API server: in-cluster where nothing else is said and there is one, else by the usual
// kubeconfig rules.
func clusterConfig(k config.Kubernetes) (*rest.Config, error) {
	if k == (config.Kubernetes{}) {
		cluster, err := rest.InClusterConfig()
		if err == nil || !errors.Is(err, rest.ErrNotInCluster) {
			return cluster, err
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: k.Context}
	cluster, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	switch {
	case err == nil:
		return cluster, nil
	case clientcmd.IsEmptyConfig(err) && k.Kubeconfig != "":
		return nil, fmt.Errorf("kubernetes.kubeconfig: %s has no current context; kubernetes.context names one", k.Kubeconfig)
	case clientcmd.IsEmptyConfig(err):
		return nil, errors.New("no Kubernetes cluster is known: this is not a pod, and neither kubernetes.kubeconfig, KUBECONFIG nor " +
			"~/.kube/config names one")
	case k.Kubeconfig != "" && errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("kubernetes.kubeconfig: there is no file %s", k.Kubeconfig)
	}
	return nil, fmt.Errorf("find the Kubernetes cluster: %w", err)
}
