package k8s

import "time"

const (
	outageIsDeaf = 5 * time.Second // what lasts so long is told to the journal
	outageTold   = time.Minute     // how often the log hears of what lasts
)

// outage is the time in which an object can't be watched: from the first failure until a watch lasts. Thousands of
// objects may have one at once, so it is told seldom.
type outage struct {
	since time.Time // zero: there is none
	told  time.Time // in the log
	code  int       // the API server's answer then; 0: it gave none
	gap   bool      // the journal knows
}

// failed notes a failure, and says whether the log should hear of it: of the first, of one of another kind, and of one
// each minute.
func (o *outage) failed(now time.Time, code int) bool {
	if o.since.IsZero() {
		o.since = now
	} else if code == o.code && now.Sub(o.told) < outageTold {
		return false
	}
	o.told, o.code = now, code
	return true
}

// deaf says, once, that the outage has lasted so long that the journal should not go on as if all were seen.
func (o *outage) deaf(now time.Time) bool {
	if o.gap || now.Sub(o.since) < outageIsDeaf {
		return false
	}
	o.gap = true
	return true
}

// over says, once, that the end of the outage is worth telling.
func (o *outage) over() bool {
	told := o.gap
	o.gap = false
	return told
}
