package k8s

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

const uuid1 = "01234567-89ab-cdef-fedc-ba9876543210"

func TestFlinkValues(t *testing.T) {
	for value, want := range map[string]*journal.LeaderInfo{
		uuid1 + ",http://a:8081":                 {Session: uuid1, Address: "http://a:8081"},
		uuid1 + ",a,b,c":                         {Session: uuid1, Address: "a,b,c"}, // the first comma separates
		"01234567-89AB-CDEF-FEDC-BA9876543210,a": {Session: uuid1, Address: "a"},
		"1-2-3-4-5,a":                            {Session: "00000001-0002-0003-0004-000000000005", Address: "a"}, // as java.util.UUID.fromString
		"":                                       nil,
		uuid1:                                    nil,
		uuid1 + ",":                              nil,
		",a":                                     nil,
		"not-a-uuid,a":                           nil,
		"0123456g-89ab-cdef-fedc-ba9876543210,a": nil,
		uuid1 + "-0,a":                           nil,
		"----,a":                                 nil,
	} {
		require.Equal(t, want, flinkKeys{}.decode(value), "%q", value)
	}
}

func TestFlinkSessionsThatCannotBeShown(t *testing.T) {
	for _, session := range []string{
		"", "s1", "01234567-89AB-CDEF-FEDC-BA9876543210", "{" + uuid1 + "}", "urn:uuid:" + uuid1, "0123456789abcdeffedcba9876543210",
	} {
		_, err := flinkKeys{}.encode(&journal.LeaderInfo{Session: session, Address: "a"})
		require.ErrorIs(t, err, errSession, session)
	}
	_, err := flinkKeys{}.encode(&journal.LeaderInfo{Session: uuid1})
	require.ErrorIs(t, err, errNoAddress)
}

func FuzzFlinkValue(f *testing.F) {
	f.Add(uuid1 + ",http://a:8081")
	f.Add("1-2-3-4-5,a")
	f.Add(",")
	f.Fuzz(func(t *testing.T, value string) {
		leader := flinkKeys{}.decode(value)
		if leader == nil {
			return
		}
		text, err := flinkKeys{}.encode(leader)
		require.NoError(t, err, "what is read is canonical")
		require.Equal(t, leader, flinkKeys{}.decode(text))
	})
}

func FuzzJSONValue(f *testing.F) {
	f.Add(`{"session":"s1","candidate":"jm-1","address":"http://a:8081","properties":{"a":"b"}}`)
	f.Add(`{"session":1}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, value string) {
		leader := jsonKeys{}.decode(value)
		if leader == nil {
			return
		}
		text, err := jsonKeys{}.encode(leader)
		require.NoError(t, err)
		require.True(t, sameLeader(leader, jsonKeys{}.decode(text)))
	})
}

func annotated(name, value string) *excerpt {
	x := &excerpt{}
	x.Metadata.Annotations = map[string]string{name: value}
	return x
}

func TestLockRecords(t *testing.T) {
	for record, holder := range map[string]string{
		`{"holderIdentity":"jm-1","leaseDuration":15.000000000,"acquireTime":"2024-01-01T00:00:00.000000Z","leaderTransitions":3}`: "jm-1",
		`{"holderIdentity":"jm-1","leaseDuration":"PT15S","acquireTime":"2024-01-01T00:00:00.000000Z","leaderTransitions":3}`:      "jm-1",
		`{"holderIdentity":"jm-1","leaseDurationSeconds":15,"acquireTime":"2024-01-01T00:00:00Z","leaderTransitions":0}`:           "jm-1",
		`{"holderIdentity":"http://10.0.0.1:8081","leaseDurationSeconds":60,"renewTime":"20240101T000000.000Z"}`:                   "http://10.0.0.1:8081",
		`{"holderIdentity":"","leaseDuration":1}`:   "",
		`{"holderIdentity":null,"leaseDuration":1}`: "",
		`{"leaseDuration":1}`:                       "",
		`{"holderIdentity":7}`:                      "",
		`not JSON`:                                  "",
		``:                                          "",
	} {
		require.Equal(t, holder, annotated(lockAnnotation, record).lockHolder(), record)
	}
	require.Empty(t, (&excerpt{}).lockHolder())
}

func FuzzLockRecord(f *testing.F) {
	f.Add(`{"holderIdentity":"jm-1","leaseDuration":15.000000000}`)
	f.Fuzz(func(_ *testing.T, record string) { annotated(lockAnnotation, record).lockHolder() })
}

func TestFenceThatCannotBeReadIsNone(t *testing.T) {
	for text, want := range map[string]uint64{"7": 7, "18446744073709551615": 1<<64 - 1, "": 0, "-1": 0, "x": 0, "18446744073709551616": 0} {
		require.Equal(t, want, annotated(SequenceAnnotation, text).fence(), text)
	}
}

func TestObjectNames(t *testing.T) {
	for _, c := range []struct {
		kind, object, component, want string
	}{
		{Lease, "", "restServer", "prod.flink-restserver"},
		{Lease, "", "job/a:1%", "prod.flink-job-a-1-"},
		{Lease, "flink-{component}", "RestServer", "flink-restserver"},
		{ConfigMap, "x-{component}-y", "a_b", "x-a-b-y"},
		{ConfigMap, "one", "a", "one"},
	} {
		require.Equal(t, c.want, objectName("Prod.Flink", journal.Target{Kind: c.kind, Object: c.object}, c.component))
	}
}

func TestKeysThatAConfigMapCannotHave(t *testing.T) {
	for component, held := range map[string]bool{"restserver": true, "job-0": true, "a.b_c-D": true, "a/b": false, "a:b": false, "a%b": false} {
		e := &projector.Entry{Leader: &journal.LeaderInfo{Session: uuid1, Address: "a"}}
		for _, l := range []layout{configMap{flinkKeys{}}, configMap{jsonKeys{}}} {
			require.Equal(t, held, l.refuse(component, e) == nil, component)
		}
	}
	require.Error(t, configMap{jsonKeys{}}.refuse("..", &projector.Entry{}))
}
