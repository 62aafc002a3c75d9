package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size that is written as a number with or without a unit: 10GiB, 500MB, 1048576.
type Bytes int64

type unit struct {
	name string
	size int64
}

func units() []unit {
	return []unit{
		{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"B", 1},
	}
}

// String has the largest unit that loses nothing.
func (b Bytes) String() string {
	for _, u := range units() {
		if b != 0 && u.size > 1 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// MarshalText is the form that UnmarshalText reads.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	number, size := string(text), int64(1)
	for _, u := range units() {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, size = strings.TrimSpace(n), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/size {
		return fmt.Errorf("%q is no size; write it like 10GiB, 500MB or 1048576", text)
	}
	*b = Bytes(n * size)
	return nil
}
