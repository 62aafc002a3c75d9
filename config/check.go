package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

// check says everything that is wrong with the values, as far as that can be known without asking anybody.
func (e *Effective) check(s Sources) Problems {
	c := &checker{e: e, sources: s}
	c.listen("listen", e.Listen, false)
	c.must("data", e.Data != "" || !e.NATS.Embedded, "is empty; it is the directory of the journal")
	c.oneOf("log.level", e.Log.Level, "debug", "info", "warn", "error")
	c.oneOf("log.format", e.Log.Format, "text", "json")
	c.must("metrics.maxSeries", e.Metrics.MaxSeries >= 0, "is negative; 0 means no series by component")
	c.nats()
	c.zookeeper()
	c.policy("defaults.policy", &e.Defaults.Policy)
	c.groups()
	return c.problems
}

type checker struct {
	e        *Effective
	sources  Sources
	problems Problems
}

func (c *checker) fail(key, format string, args ...any) {
	c.problems = append(c.problems, &Problem{From: line(c.e.origins, key), Key: key, Text: fmt.Sprintf(format, args...)})
}

// parent is the key that a key is under.
func parent(key string) string {
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}

func (c *checker) must(key string, holds bool, problem string) {
	if !holds {
		c.fail(key, "%s", problem)
	}
}

func (c *checker) oneOf(key, value string, words ...string) {
	c.must(key, slices.Contains(words, value), fmt.Sprintf("%q is none of %s", value, strings.Join(words, ", ")))
}

// listen checks an address to listen on. Beyond loopback anybody could write to the journal.
func (c *checker) listen(key, address string, optional bool) {
	if address == "" && optional {
		return
	}
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		c.fail(key, "%q is not host:port, such as 127.0.0.1:8086", address)
		return
	}
	if !c.e.Insecure && !loopback(host) {
		c.fail(key, "%s can be reached from other machines, and this version can't tell who is asking; "+
			"listen on 127.0.0.1, or say insecure: true where the network itself keeps strangers out", address)
	}
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func (c *checker) nats() {
	n := &c.e.NATS
	c.must("nats.replicas", 1 <= n.Replicas && n.Replicas <= 5, "is not between 1 and 5")
	if n.Embedded {
		c.embedded(n)
		return
	}
	c.must("nats.url", n.URL != "", "is empty, and embedded is false: there is no journal to write to")
	c.must("nats.maxBytes", n.MaxBytes > 0 || n.URL == "", "is needed with nats.url: a journal has a size")
	c.must("nats.listen", n.Listen == "", "is for the embedded server only")
	c.must("nats.maxStore", n.MaxStore == 0, "is for the embedded server only")
	c.must("nats.cluster", n.Cluster.empty(), "is for the embedded server only")
	c.must("nats.tls.key", (n.TLS.Key == "") == (n.TLS.Cert == ""), "goes together with nats.tls.cert")
}

func (c *checker) embedded(n *NATS) {
	c.must("nats.url", n.URL == "", "is set, and embedded is true: say which one it is")
	c.must("nats.credentials", n.Credentials == "", "is for nats.url only")
	c.must("nats.systemCredentials", n.SystemCredentials == "", "is for nats.url only")
	c.must("nats.tls", n.TLS == TLS{}, "is for nats.url only")
	c.listen("nats.listen", n.Listen, true)
	if n.Cluster.empty() {
		c.must("nats.replicas", n.Replicas == 1, "is more than 1, which takes nats.cluster or nats.url")
		return
	}
	c.must("nats.cluster.name", n.Cluster.Name != "", "is missing")
	c.must("nats.cluster.routes", len(n.Cluster.Routes) > 0, "is missing; it lists the other servers as nats://host:port")
	c.listen("nats.cluster.listen", n.Cluster.Listen, false)
}

func (c *Cluster) empty() bool { return c.Name == "" && c.Listen == "" && len(c.Routes) == 0 }

func (c *checker) zookeeper() {
	z := &c.e.ZooKeeper
	if err := c.sources.ZooKeeper(z.Servers); err != nil {
		c.fail("zookeeper.servers", "%s", err)
	}
	timeout := time.Duration(z.SessionTimeout)
	c.must("zookeeper.sessionTimeout", time.Second <= timeout && timeout <= 10*time.Minute, "is not between 1s and 10m")
	c.oneOf("zookeeper.acl", z.ACL, OpenACL, DigestACL)
	c.must("zookeeper.credentials", z.ACL != DigestACL || z.Credentials != "", "is missing; with acl: digest it is a file with user:password")
	c.must("zookeeper.credentials", z.ACL == DigestACL || z.Credentials == "", "goes together with acl: digest")
}

func (c *checker) policy(key string, p *policy.Policy) {
	for _, err := range parts(p.Validate()) {
		field, problem, _ := strings.Cut(err.Error(), ": ")
		c.fail(key+"."+field, "%s", problem)
	}
	if lease := p.Lease.Duration; p.Election == policy.Managed && c.e.NATS.clustered() && 0 < lease && lease < shortestLease {
		c.fail(key+".lease.duration", "%s is shorter than %s, and the journal is on a cluster of NATS servers, or may be: when the leader of a "+
			"stream is killed nothing is stored for 4.3 to 7.5 s, and no lease renewed; say %s or more", lease, shortestLease, shortestLease)
	}
}

// shortestLease is that of a managed group whose keys are on a cluster: as long as a new leader takes, as measured with
// NATS 2.15, and the time for a renewal.
const shortestLease = policy.Duration(10 * time.Second)

// clustered says whether the journal's streams may have to elect a leader.
func (n *NATS) clustered() bool { return !n.Embedded || !n.Cluster.empty() || n.Replicas > 1 }

func (c *checker) groups() {
	seen := map[string]bool{}
	for i := range c.e.Groups {
		g := &c.e.Groups[i]
		key := fmt.Sprintf("groups[%d]", i)
		c.must(key+".name", !seen[g.Name], fmt.Sprintf("there are two groups named %q", g.Name))
		seen[g.Name] = true
		c.policy(key+".policy", &g.Policy)
		c.group(key, g)
		for j := range g.Targets {
			if err := c.sources.Target(g.Name, g.Targets[j]); err != nil {
				c.fail(fmt.Sprintf("%s.targets[%d]", key, j), "%s", err)
			}
		}
	}
}

// group checks what the record of the group's policy will be checked for when it is appended.
func (c *checker) group(key string, g *Group) {
	defaults := policy.Default()
	defaults.Authority = g.Policy.Authority // the policy itself was checked before
	event := journal.Event{
		ID: "config", Source: "operator/config", Group: g.Name,
		Data: &journal.Policy{Policy: defaults, Targets: &g.Targets, Order: journal.Order{Actor: "config", Reason: "config"}},
	}
	for _, err := range parts(event.Validate()) {
		var field *journal.FieldError
		switch {
		case !errors.As(err, &field):
			c.fail(key, "%s", err)
		case field.Field == "subject":
			c.fail(key+".name", "%s", field.Problem)
		default:
			c.fail(key+"."+strings.TrimPrefix(field.Field, "data."), "%s", field.Problem)
		}
	}
}

// parts are the errors that were joined, or joined within joined ones.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, parts(one)...)
	}
	return all
}
