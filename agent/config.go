package agent

import (
	_ "embed" // the example
	"time"

	"github.com/leadership-journal/journald/config"
	"github.com/leadership-journal/journald/policy"
)

// Config is everything that can be set. The names in JSON are those of the file.
type Config struct {
	Server      string            `json:"server"`      // journald at http(s)://, or NATS at nats:// or tls://; comma-separated
	Credentials string            `json:"credentials"` // file, for NATS
	TLS         config.TLS        `json:"tls"`         //
	Group       string            `json:"group"`       //
	Candidate   string            `json:"candidate"`   // the same after every start
	Components  []string          `json:"components"`  // that it may lead
	Address     string            `json:"address"`     // where it can be reached while it leads
	Properties  map[string]string `json:"properties"`  // told to clients beside the address
	Priority    int               `json:"priority"`    // among the fit; higher first
	Labels      map[string]string `json:"labels"`      // for readers only
	Election    string            `json:"election"`    // external or managed, as the group's policy
	Checks      []Check           `json:"checks"`      //
	Probe       Probe             `json:"probe"`       //
	Hooks       Hooks             `json:"hooks"`       //
	StopWithin  policy.Duration   `json:"stopWithin"`  // for everything to stop in when the agent is told to end
	Log         config.Log        `json:"log"`         //
}

// Check is tried again and again.
type Check struct {
	Name     string          `json:"name"`
	Kind     string          `json:"kind"` // disk, http, tcp, exec or progress
	Period   policy.Duration `json:"period"`
	Deadline policy.Duration `json:"deadline"`
	Settings Settings        `json:"settings"` // those of the kind
}

// Settings are those of all kinds of checks.
type Settings struct {
	// disk
	Paths             []string `json:"paths"`
	FreePercent       float64  `json:"freePercent"`
	FreeInodesPercent float64  `json:"freeInodesPercent"`
	WriteProbe        bool     `json:"writeProbe"`

	// http
	URL      string `json:"url"`
	Method   string `json:"method"`
	Status   int    `json:"status"`
	Contains string `json:"contains"`
	CA       string `json:"ca"`

	// tcp
	Address string `json:"address"`

	// exec
	Command []string          `json:"command"`
	Dir     string            `json:"dir"`
	Env     map[string]string `json:"env"`

	// progress
	Number string `json:"number"` // file with a number that has to change
	File   string `json:"file"`   // file that has to be written to
	Within int    `json:"within"` // periods
}

// Probe is what comes before each renewal of the lease: a write to each of these directories. One that hangs lets the lease
// run out.
type Probe struct {
	Paths []string `json:"paths"`
	Off   bool     `json:"off"`
}

// Hooks are how the agent has the process do what the journal wants.
type Hooks struct {
	OnYield   Hook `json:"onYield"`   // give the leadership up; managed: get ready to
	OnFit     Hook `json:"onFit"`     // external: contend again
	OnGranted Hook `json:"onGranted"` // managed: begin to lead
	OnRevoked Hook `json:"onRevoked"` // managed: stop leading
}

// Hook is one request, or one program.
type Hook struct {
	HTTP    Request         `json:"http"`
	Command []string        `json:"command"`
	Timeout policy.Duration `json:"timeout"`
}

// Request is sent with a [Notice] as its body.
type Request struct {
	URL    string `json:"url"`
	Method string `json:"method"`
}

// Default is what a file leaves out.
func Default() Config {
	return Config{
		Server: "http://127.0.0.1:8086", Election: policy.External, StopWithin: policy.Duration(15 * time.Second),
		Log: config.Log{Level: "info", Format: "text"},
	}
}

const (
	defaultPeriod     = policy.Duration(30 * time.Second)
	defaultDeadline   = policy.Duration(10 * time.Second)
	defaultTimeout    = policy.Duration(10 * time.Second)
	defaultFree       = 5 // percent
	defaultFreeInodes = 1 // percent
	defaultWithin     = 3 // periods
)

// Example is a commented file with every key.
func Example() string { return example }

//go:embed example.yaml
var example string
