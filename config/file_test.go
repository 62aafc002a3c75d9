package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/config"
	"github.com/leadership-journal/journald/policy"
)

// fruit is a configuration that is not journald's.
type fruit struct {
	Name   string            `json:"name"`
	Weight float64           `json:"weight"`
	Ripens policy.Duration   `json:"ripens"`
	Labels map[string]string `json:"labels"`
	Seeds  []struct {
		Size float64 `json:"size"`
	} `json:"seeds"`
}

func TestAFileOfAnotherKind(t *testing.T) {
	name := file(t, "name: apple\nweight: 3\nlabels: {a: b, c: 'd'}\nseeds:\n- {size: 1.5}\n- {}\n")
	f := fruit{Ripens: 7}
	read, err := config.Read(name, "fruit example", &f)
	require.NoError(t, err)
	require.NoError(t, read.Err())
	require.Equal(t, "apple", f.Name)
	require.InDelta(t, 3, f.Weight, 0)
	require.EqualValues(t, 7, f.Ripens, "a default stays")
	require.Equal(t, map[string]string{"a": "b", "c": "d"}, f.Labels)
	require.InDelta(t, 1.5, f.Seeds[0].Size, 0)
	require.True(t, read.Said("seeds[0].size"))
	require.False(t, read.Said("seeds[1].size"))
	read.Fail("seeds[1].size", "is missing")
	require.EqualError(t, read.Err(), "journald.yaml:6: seeds[1].size: is missing")
}

func TestEverythingThatIsWrongWithAFileOfAnotherKind(t *testing.T) {
	var f fruit
	read, err := config.Read(file(t, "nmae: x\nweight: heavy\nlabels: {a: []}\nseeds: {}\nauth: {}\n"), "fruit example", &f)
	require.NoError(t, err)
	require.EqualError(t, read.Err(), "5 problems\n"+
		`  journald.yaml:1: nmae: is no key that is known here; did you mean "name"?`+"\n"+
		`  journald.yaml:2: weight: is the text "heavy" where a number is wanted`+"\n"+
		`  journald.yaml:3: labels.a: is a list where a text (put it in quotes) is wanted`+"\n"+
		`  journald.yaml:4: seeds: is a map where a list is wanted`+"\n"+
		`  journald.yaml:5: auth: is no key that is known here; known here: name, weight, ripens, labels, seeds`)
	_, err = config.Read("/none/fruit.yaml", "fruit example", &f)
	require.ErrorContains(t, err, "`fruit example` prints one to begin with")
	read, err = config.Read(file(t, ""), "fruit example", &f)
	require.NoError(t, err)
	require.NoError(t, read.Err())
}
