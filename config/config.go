package config

import (
	"cmp"
	"net"
	"os"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/projector"
)

// Config is everything that can be set. The names in JSON are those of the file.
type Config struct {
	Listen     string     `json:"listen"`   // host:port of the HTTP API
	Data       string     `json:"data"`     // directory of the embedded NATS server
	Instance   string     `json:"instance"` // unique among those on one journal; empty: host name and port
	Insecure   bool       `json:"insecure"` // listening beyond loopback with nobody asked who they are
	Log        Log        `json:"log"`
	NATS       NATS       `json:"nats"`
	Kubernetes Kubernetes `json:"kubernetes"`
	ZooKeeper  ZooKeeper  `json:"zookeeper"`
	Metrics    Metrics    `json:"metrics"`
	Defaults   Defaults   `json:"defaults"`
	Groups     []Group    `json:"groups"`
}

// Log says what is written to standard error.
type Log struct {
	Level  string `json:"level"`  // debug, info, warn or error
	Format string `json:"format"` // text or json
}

// NATS says where the journal is: on a server inside this process, or elsewhere.
type NATS struct {
	Embedded          bool    `json:"embedded"`          //
	Listen            string  `json:"listen"`            // embedded: host:port for network clients; empty: none
	MaxStore          Bytes   `json:"maxStore"`          // embedded: of all streams; 0: half of the free disk at first start
	Cluster           Cluster `json:"cluster"`           // embedded: together with other journalds
	URL               string  `json:"url"`               // comma-separated; excludes embedded
	Credentials       string  `json:"credentials"`       // file, for url
	SystemCredentials string  `json:"systemCredentials"` // file, for url: to verify how the servers sync
	TLS               TLS     `json:"tls"`               // for url
	Replicas          int     `json:"replicas"`          // copies of the journal
	MaxBytes          Bytes   `json:"maxBytes"`          // size of the journal; needed with url
}

// Cluster joins the embedded servers of several journalds.
type Cluster struct {
	Name   string   `json:"name"`
	Listen string   `json:"listen"` // host:port for the other servers
	Routes []string `json:"routes"` // the other servers: nats://host:port
}

// TLS are files with PEM blocks.
type TLS struct {
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Kubernetes says which API server is meant; both empty: in-cluster, then the usual kubeconfig rules.
type Kubernetes struct {
	Kubeconfig string `json:"kubeconfig"`
	Context    string `json:"context"`
}

// ZooKeeper says which ensemble is meant. Nobody connects to it before a target needs it.
type ZooKeeper struct {
	Servers        []string        `json:"servers"`        // host:port each; the last one may end in a chroot
	SessionTimeout policy.Duration `json:"sessionTimeout"` // after two thirds of it a mute server counts as lost
	ACL            string          `json:"acl"`            // of the nodes that are made: OpenACL or DigestACL
	Credentials    string          `json:"credentials"`    // file with user:password, for DigestACL
}

// What nodes in ZooKeeper are made with. Everybody may read them in either case, or readers would fail.
const (
	OpenACL   = "open"   // everybody may change them
	DigestACL = "digest" // only the user of the credentials may
)

// Metrics bounds what /metrics says.
type Metrics struct {
	MaxSeries int `json:"maxSeries"` // components with series of their own
}

// Defaults hold for every group that does not say otherwise, and for groups that only appear in events.
type Defaults struct {
	Policy policy.Policy `json:"policy"`
}

// Group is what is configured for one group.
type Group struct {
	Name    string           `json:"name"`
	Policy  policy.Policy    `json:"policy"`
	Targets []journal.Target `json:"targets"`
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{
		Listen: "127.0.0.1:8086",
		Data:   "./data",
		Log:    Log{Level: "info", Format: "text"},
		NATS:   NATS{Embedded: true, Replicas: 1},
		ZooKeeper: ZooKeeper{
			Servers: []string{"127.0.0.1:2181"}, SessionTimeout: policy.Duration(10 * time.Second), ACL: OpenACL,
		},
		Metrics:  Metrics{MaxSeries: 1000},
		Defaults: Defaults{Policy: policy.Default()},
	}
}

// Settings is what a projector has to know.
func (c *Config) Settings() projector.Settings {
	s := projector.Settings{Defaults: c.Defaults.Policy, Groups: make(map[string]projector.Group, len(c.Groups))}
	for _, g := range c.Groups {
		s.Groups[g.Name] = projector.Group{Policy: g.Policy, Targets: g.Targets}
	}
	return s
}

// name fills in the instance: the host's name and the port, which two journalds of one host can't share.
func (c *Config) name() error {
	if c.Instance != "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return &Problem{Key: "instance", Text: "is not set, and the host has no name to take: " + err.Error()}
	}
	_, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil //nolint:nilerr // said where listen is checked
	}
	c.Instance = host + "-" + cmp.Or(port, "0")
	return nil
}
