package journal

import "github.com/leadership-journal/journald/policy"

// Kinds are the words for all kinds of event, in the order of the contract.
func Kinds() []string {
	return []string{
		"join", "leave", "grant", "revoke", "confirm", "ready", "release", "withdraw", "retry", "health", "watch",
		"transfer", "exclude", "include", "pause", "resume", "policy",
		"takeover", "push", "yield", "hold", "stale", "alert", "clear", "checkpoint",
	}
}

// newData is an empty data object of a kind, or nil where there is no such kind.
func newData(kind string) Data {
	switch kind {
	case "join":
		return &Join{}
	case "leave":
		return &Leave{}
	case "grant":
		return &Grant{}
	case "revoke":
		return &Revoke{}
	case "confirm":
		return &Confirm{}
	case "ready":
		return &Ready{}
	case "release":
		return &Release{}
	case "withdraw":
		return &Withdraw{}
	case "retry":
		return &Retry{}
	case "health":
		return &Health{}
	case "watch":
		return &Watch{}
	}
	return newOrder(kind)
}

func newOrder(kind string) Data {
	switch kind {
	case "transfer":
		return &Transfer{}
	case "exclude":
		return &Exclude{}
	case "include":
		return &Include{}
	case "pause":
		return &Pause{}
	case "resume":
		return &Resume{}
	case "policy":
		return &Policy{Policy: policy.Default()} // what the event leaves out is as built in
	}
	return newDecision(kind)
}

func newDecision(kind string) Data {
	switch kind {
	case "takeover":
		return &Takeover{}
	case "push":
		return &Push{}
	case "yield":
		return &Yield{}
	case "hold":
		return &Hold{}
	case "stale":
		return &Stale{}
	case "alert":
		return &Alert{}
	case "clear":
		return &Clear{}
	case "checkpoint":
		return &Checkpoint{}
	}
	return nil
}
