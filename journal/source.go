package journal

// order is promoted to every kind that an operator speaks.
func (o *Order) order() *Order { return o }

// SourceOf is who says such a thing, as far as the data tells: candidate/<candidate> or operator/<actor>, escaped so that
// it is a URI reference; empty where the data names nobody.
func SourceOf(data Data) string {
	if o, ok := data.(interface{ order() *Order }); ok {
		return source("operator/", o.order().Actor)
	}
	switch d := data.(type) {
	case *Join:
		return source("candidate/", d.Candidate)
	case *Leave:
		return source("candidate/", d.Candidate)
	case *Grant:
		return source("candidate/", d.Candidate)
	case *Revoke:
		return source("candidate/", d.Candidate)
	case *Confirm:
		return source("candidate/", d.Candidate)
	case *Health:
		return source("candidate/", d.Candidate)
	case *Withdraw:
		return source("operator/", d.Actor)
	}
	return ""
}

func source(role, name string) string {
	if name == "" {
		return ""
	}
	return role + escape(name, ".~@:")
}
