package admin

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guard refuses what a browser was made to ask by a foreign page, and tells browsers
// to load nothing from elsewhere.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if !s.access.Load().knows(r.Host) {
			plainText(w, http.StatusForbidden, "this host is not known here: use an address, localhost, or a name of admin.hosts in the configuration\n")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knows reports whether a host that a request names is one that only who means this
// server would name. A name that anybody can have point here is none.
func (a *Access) knows(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return address.Zone() == ""
	}
	return slices.ContainsFunc(append([]string{"localhost"}, a.Hosts...), func(name string) bool { return strings.EqualFold(name, host) })
}
