package zk_test

import (
	"os"
	"testing"
	"time"

	"github.com/leadership-journal/journald/internal/testenv"
)

var single testenv.SharedZooKeeper

func TestMain(m *testing.M) { os.Exit(single.Run(m)) }

// session is the time-out of all sessions here: long enough for a machine that does much else.
const session = 4 * time.Second
