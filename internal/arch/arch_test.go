// Package arch holds the layers: which package may be built of which, and which are pure. It is nothing but tests.
package arch

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// rules are everything that holds of the module.
func rules() map[string]func(*module) []string {
	return map[string]func(*module) []string{
		"nothing is built of what is above it": upward,
		"every package stands in a layer":      unplaced,
		"only cmd wires":                       unwired,
		"journal, policy and view are pure":    impure,
	}
}

func TestArchitecture(t *testing.T) {
	m, err := load(os.DirFS(filepath.Join("..", "..")))
	require.NoError(t, err)
	require.Contains(t, m.imports("journal"), "policy", "the module was not read")
	require.Subset(t, m.dirs(), append(pure(), "projector"))
	for name, rule := range rules() {
		t.Run(name, func(t *testing.T) { require.Empty(t, rule(m)) })
	}
}

// source is a module whose files hold nothing but what is given here.
func source(t *testing.T, files map[string]string) *module {
	t.Helper()
	fsys := fstest.MapFS{
		"go.mod":                 {Data: []byte("module example.org/j\n\ngo 1.26\n")},
		"policy/p.go":            {Data: []byte("package policy\n")},
		"journal/j.go":           {Data: []byte("package journal\n\nimport (\n\t\"time\"\n\n\t\"example.org/j/policy\"\n)\n\nvar _ time.Time\n")},
		"view/v.go":              {Data: []byte("package view\n\nimport _ \"example.org/j/journal\"\n")},
		"journal/stream/s.go":    {Data: []byte("package stream\n\nimport (\n\t_ \"net\"\n\t_ \"example.org/j/journal\"\n)\n")},
		"projector/p.go":         {Data: []byte("package projector\n\nimport _ \"example.org/j/view\"\n")},
		"projector/conf/c.go":    {Data: []byte("package conf\n\nimport _ \"example.org/j/projector\"\n")},
		"adapters/kv/k.go":       {Data: []byte("package kv\n\nimport _ \"example.org/j/adapters/kv/inner\"\n")},
		"adapters/kv/inner/i.go": {Data: []byte("package inner\n\nimport _ \"example.org/j/projector\"\n")},
		"cmd/d/main.go":          {Data: []byte("package main\n\nimport _ \"example.org/j/adapters/kv\"\n")},
		"tools/go.mod":           {Data: []byte("module example.org/tools\n")},
		"tools/t.go":             {Data: []byte("no Go at all")},
		"view/testdata/x.go":     {Data: []byte("no Go at all")},
		"view/v_test.go":         {Data: []byte("package view\n\nimport _ \"os\"\n")},
	}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	m, err := load(fsys)
	require.NoError(t, err)
	return m
}

// Each rule is broken once: a rule that can't fail holds nothing.
func TestRulesFindWhatBreaksThem(t *testing.T) {
	for name, rule := range rules() {
		require.Empty(t, rule(source(t, nil)), name)
	}
	for _, c := range []struct {
		name, file, text string
		rule             func(*module) []string
		want             string
	}{
		{
			"upward", "journal/x.go", `package journal; import _ "example.org/j/view"`, upward,
			"journal is built of view, through journal: only what is above view may be",
		},
		{
			"upward through a helper", "view/x.go", `package view; import _ "example.org/j/internal/h"`, upward,
			"view is built of projector, through internal/h: only what is above projector may be",
		},
		{
			"up from the bottom", "policy/x.go", `package policy; import _ "example.org/j/journal/stream"`, upward,
			"policy is built of journal, through journal/stream: only what is above journal may be",
		},
		{
			"the log's storage", "projector/x.go", `package projector; import _ "example.org/j/journal/stream"`, upward,
			"projector is built of journal/stream, through projector: only what is above journal/stream may be",
		},
		{
			"sideways", "server/x.go", `package server; import _ "example.org/j/scenario"`, upward,
			"server is built of scenario, through server: only what is above scenario may be",
		},
		{
			"adapter to adapter", "adapters/k8s/x.go", `package k8s; import _ "example.org/j/adapters/kv"`, unwired,
			"adapters/k8s imports adapters/kv: only cmd may import an adapter",
		},
		{
			"a helper to an adapter", "internal/x/x.go", `package x; import _ "example.org/j/adapters/kv/inner"`, unwired,
			"internal/x imports adapters/kv/inner: only cmd may import an adapter",
		},
		{"cmd", "server/x.go", `package server; import _ "example.org/j/cmd/d"`, unwired, "server imports cmd/d: nobody imports cmd"},
		{
			"testenv", "server/x.go", `package server; import _ "example.org/j/internal/testenv"`, unwired,
			"server imports internal/testenv, which is for tests",
		},
		{"nowhere", "extra/x.go", `package extra`, unplaced, "extra stands in no layer: say in internal/arch where it belongs"},
		{"net", "view/x.go", `package view; import _ "net/http"`, impure, "view/x.go imports net/http, which is no part of a pure package"},
		{"os", "policy/x.go", `package policy; import _ "os"`, impure, "policy/x.go imports os, which is no part of a pure package"},
		{
			"NATS", "journal/x.go", `package journal; import _ "github.com/nats-io/nats.go"`, impure,
			"journal/x.go imports github.com/nats-io/nats.go, which is no part of a pure package",
		},
		{
			"Kubernetes", "journal/x.go", `package journal; import _ "k8s.io/api/core/v1"`, impure,
			"journal/x.go imports k8s.io/api/core/v1, which is no part of a pure package",
		},
		{
			"another platform", "view/x_windows.go", "//go:build windows\n\npackage view; import _ \"syscall\"", impure,
			"view/x_windows.go imports syscall, which is no part of a pure package",
		},
		{
			"the clock", "view/x.go", `package view; import "time"; var t = time.Now()`, impure,
			"view/x.go uses time.Now: a pure package has no clock",
		},
		{
			"the clock by another name", "view/x.go", `package view; import clock "time"; var now = clock.Since`, impure,
			"view/x.go uses time.Since: a pure package has no clock",
		},
		{
			"the clock by no name", "view/x.go", `package view; import . "time"; var now = Now()`, impure,
			"view/x.go imports all names of time: the clock's uses can't be seen",
		},
		{
			"a timer in a helper", "policy/x.go", `package policy; import _ "example.org/j/internal/t"`, impure,
			"internal/t/t.go uses time.NewTimer: a pure package has no clock",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := source(t, map[string]string{
				c.file:            c.text,
				"internal/h/h.go": `package h; import _ "example.org/j/projector"`,
				"internal/t/t.go": `package t; import "time"; var _ = time.NewTimer`,
			})
			require.Contains(t, c.rule(m), c.want)
		})
	}
}
