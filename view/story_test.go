package view_test

import (
	"time"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func rules() policy.Policy { return policy.Default() }

func order() journal.Order { return journal.Order{Actor: "alice", Reason: "test"} }
