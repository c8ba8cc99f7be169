package explain

import (
	"fmt"

	"github.com/seed90641741/spillway"
)

// decided says what decided the class of the request, of the sequence that
// ingress.Trust documents: route, identity, header.
func (e *explaining) decided() string {
	class, said := e.call.Criticality, e.claims.Labelled
	inside := e.inside()
	asked := e.route.Class // without a limit of the caller's
	if said && inside {
		asked = e.claims.Criticality
	}
	switch {
	case inside && class < asked:
		return fmt.Sprintf("identity: %v is the highest that %s may use, and %s is %v", class, e.who(), e.source(said), asked)
	case said && class == e.claims.Criticality && (inside || class < e.route.Class):
		return e.source(true)
	case e.route.Config.Criticality != "":
		return "route"
	default:
		return "none of route, identity and header: the default is " + spillway.Critical.String()
	}
}

// source names where a class comes from before the caller's limit.
func (e *explaining) source(said bool) string {
	switch {
	case !said && e.route.Config.Criticality != "":
		return "route"
	case !said:
		return "the default"
	case len(e.question.Request.Header["X-Request-Criticality"]) > 0:
		return "header X-Request-Criticality"
	default:
		return "header Baggage, member criticality"
	}
}
