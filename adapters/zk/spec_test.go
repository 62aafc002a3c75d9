package zk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/adapters/zk"
	"github.com/leadership-journal/journald/journal"
)

func TestValidate(t *testing.T) {
	good := journal.Target{Name: "zk", Kind: zk.Kind, Layout: zk.Latch, Path: "/leaders/{component}"}
	with := func(change func(*journal.Target)) journal.Target {
		spec := good
		change(&spec)
		return spec
	}
	for _, spec := range []journal.Target{
		good,
		with(func(s *journal.Target) { s.Layout = zk.JSON }),
		with(func(s *journal.Target) { s.Layout, s.Path = zk.Flink, "/flink/prod/leader/{component}/connection_info" }),
		with(func(s *journal.Target) { s.Path, s.Components = "/leaders/overlord", []string{"overlord"} }),
		with(func(s *journal.Target) {
			s.Path, s.Components, s.Observe = "/druid/{component}/_L", []string{"a", "b"}, true
		}),
	} {
		require.NoError(t, zk.Validate("druid", spec))
	}
	for want, spec := range map[string]journal.Target{
		`target zk: kind "k8s/lease" is not zk`:               with(func(s *journal.Target) { s.Kind = "k8s/lease" }),
		`target zk: namespace and object are for Kubernetes`:  with(func(s *journal.Target) { s.Namespace = "x" }),
		`target zk: layout is missing; it is one of flink`:    with(func(s *journal.Target) { s.Layout = "" }),
		`target zk: layout "yaml" is none of flink`:           with(func(s *journal.Target) { s.Layout = "yaml" }),
		`target zk: guarded: a znode of a live election`:      with(func(s *journal.Target) { s.Guarded = true }),
		`target zk: path is missing`:                          with(func(s *journal.Target) { s.Path = "" }),
		`target zk: path "/leaders": a znode shows one`:       with(func(s *journal.Target) { s.Path = "/leaders" }),
		`target zk: components is missing: what is only obs`:  with(func(s *journal.Target) { s.Observe = true }),
		`target zk: path "leaders/x" does not begin with /`:   with(func(s *journal.Target) { s.Path = "leaders/{component}" }),
		`target zk: path "/a//x" has a part that is`:          with(func(s *journal.Target) { s.Path = "/a//{component}" }),
		`target zk: path "/a/x/" has a part that is`:          with(func(s *journal.Target) { s.Path = "/a/{component}/" }),
		`target zk: path "/a/../x" has a part that is`:        with(func(s *journal.Target) { s.Path = "/a/../{component}" }),
		"target zk: path \"/a\\x00x\" has a character":        with(func(s *journal.Target) { s.Path = "/a\x00{component}" }),
		`target zk: path "/zookeeper/x" is ZooKeeper's own`:   with(func(s *journal.Target) { s.Path = "/zookeeper/{component}" }),
		`target zk: path "/leadership-journal/{component}": `: with(func(s *journal.Target) { s.Path = "/leadership-journal/{component}" }),
	} {
		require.ErrorContains(t, zk.Validate("druid", spec), want)
	}
}

func TestValidateServers(t *testing.T) {
	for _, servers := range [][]string{
		{"127.0.0.1:2181"}, {"zk-1", "zk-2:2182"}, {"a:1", "b:2/prod/east"}, {"[::1]:2181"}, {"a:1/"},
	} {
		require.NoError(t, zk.ValidateServers(servers))
	}
	for want, servers := range map[string][]string{
		"no ZooKeeper server is named":                      nil,
		`server "a/x": a chroot belongs behind the last`:    {"a/x", "b"},
		`server "a:0": port "0" is none`:                    {"a:0"},
		`server "a:x": port "x" is none`:                    {"a:x"},
		`server "": it is not host:port`:                    {""},
		`server "a,b": it is not host:port`:                 {"a,b"},
		`server "a:1/x//y": chroot "/x//y" has a part`:      {"a:1/x//y"},
		`server "a:1/zookeeper": chroot "/zookeeper" is Zo`: {"a:1/zookeeper"},
	} {
		require.ErrorContains(t, zk.ValidateServers(servers), want)
	}
}
