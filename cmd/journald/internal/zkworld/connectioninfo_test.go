package zkworld

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

var session = uuid.MustParse("01234567-89ab-cdef-fedc-ba9876543210")

func TestARecordThatJavaWroteIsRead(t *testing.T) {
	record, err := hex.DecodeString("aced000577160014687474703a2f2f31302e302e302e313a38303831" +
		"7372000e6a6176612e7574696c2e55554944bc9903f7986d852f0200024a000c6c65617374536967426974734a000b6d6f7374536967426974737870" +
		"fedcba98765432100123456789abcdef")
	require.NoError(t, err)
	address, id, err := decode(record)
	require.NoError(t, err)
	require.Equal(t, "http://10.0.0.1:8081", address)
	require.Equal(t, session, id)
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	for _, address := range []string{"", "h", "naïve", "\x00", "漢字", "🙂:8081", strings.Repeat("x", 40_000)} {
		record := encode(address, session)
		is, id, err := decode(record)
		require.NoError(t, err)
		require.Equal(t, address, is)
		require.Equal(t, session, id)
		for n := range min(len(record), 200) {
			_, _, err := decode(record[:len(record)-1-n])
			require.ErrorIs(t, err, errNoRecord)
		}
	}
	require.Equal(t, "\xc0\x80\xed\xa0\xbd\xed\xb9\x82", string(modified("\x00🙂")))
}
