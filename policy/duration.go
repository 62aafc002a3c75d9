package policy

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that is written as a Go duration string ("30s"), in JSON, YAML and everywhere else.
type Duration time.Duration

// String is the shortest Go form: 10m, not 10m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if len(s) > len(zero) && s[len(s)-len(zero):] == zero {
			s = s[:len(s)-len(zero)+1]
		}
	}
	return s
}

// MarshalText is the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a Go duration string; a bare number has no unit and is refused.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%.40q is no duration; write it like 30s or 10m", text)
	}
	*d = Duration(v)
	return nil
}
