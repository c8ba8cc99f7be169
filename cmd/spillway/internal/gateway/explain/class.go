package explain

import (
	"fmt"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
)

// decided returns what decided the class of the request: route, identity or header, in the
// order that ingress.Trust documents.
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
		return "default, as neither route nor header sets a class"
	}
}

// precedence returns the order of route, identity and header.
func (e *explaining) precedence() string {
	if e.inside() {
		return "header, else route; capped by identity"
	}
	return "the lower class of route and header"
}

// customerDecided says what decided the customer of the request: identity or a header,
// whichever the route names.
func (e *explaining) customerDecided() string {
	c, found := e.route.Config.Customer, e.call.Customer != ""
	switch {
	case c.Identity && found:
		return "identity: the name in the client certificate; headers do not count"
	case c.Identity:
		return "none: the route uses identity, and the client has no certificate"
	case c.Header == "":
		return "none: the route sets no customer"
	case !e.route.Named:
		return "none: at an edge header " + e.route.Header + " counts only with trusted_header"
	case found && c.Trusted:
		return "header " + e.route.Header + ", which counts because of trusted_header"
	case found:
		return "header " + e.route.Header + ", which counts at an internal boundary"
	default:
		return fmt.Sprintf("none: the request must have header %s exactly once, with at most %d bytes", e.route.Header, routes.MaxCustomer)
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
