package view

import "time"

// moment is a time in nanoseconds since 1970: a third of the size of a time.Time, for what every component has several
// of. It is written as a time.
type moment int64

func momentOf(t time.Time) moment { return moment(t.UnixNano()) }

func (m moment) time() time.Time { return time.Unix(0, int64(m)).UTC() }

// MarshalText writes the time as in RFC 3339.
func (m moment) MarshalText() ([]byte, error) { return m.time().MarshalText() }

// UnmarshalText reads what MarshalText writes.
func (m *moment) UnmarshalText(text []byte) error {
	var t time.Time
	if err := t.UnmarshalText(text); err != nil {
		return err
	}
	*m = momentOf(t)
	return nil
}
