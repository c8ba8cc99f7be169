package access

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/internal/admin/textpage"
)

// Guard rejects requests for unknown hosts and cross-site requests of browsers. A
// Content-Security-Policy forbids resources from other origins.
func (g *Gate) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if rules := g.rules.Load(); !knows(rules, r.Host) {
			textpage.Serve(w, http.StatusForbidden, "this host is not known here: use an address, localhost, or a name of "+rules.Words.Hosts+"\n")
			return
		}
		if foreign(r) {
			textpage.Serve(w, http.StatusForbidden, "another site has asked for this\n")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// foreign reports whether a request is cross-site by Fetch Metadata or its Origin (RFC
// 6454, section 7). Navigation from another site to the page is allowed.
func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	shown := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	if site != "" && site != "same-origin" && site != "none" && !shown {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host
}

// knows reports whether the Host of a request is allowed. Other names could belong to an
// attacker, whose DNS makes them point to this server.
func knows(c *Rules, host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return address.Zone() == ""
	}
	return slices.ContainsFunc(append([]string{"localhost"}, c.Hosts...), func(name string) bool { return strings.EqualFold(name, host) })
}
