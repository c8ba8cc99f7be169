package query

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/adminclient"
)

// defaultPort is the port of an address without one: that of admin.address.
const defaultPort = "8001"

// path is where a process has its state.
const path = "/api/v1/state"

// A Target is a process to ask; make one with [Parse], or find many with a [Lookup].
type Target struct {
	Address string // for people
	at      adminclient.Target
}

// Parse returns the target of an address: HOST[:PORT], http://HOST:PORT/PREFIX, https://..., or unix:PATH.
func Parse(address string) (Target, error) {
	if socket, ok := strings.CutPrefix(address, "unix:"); ok {
		if socket == "" {
			return Target{}, fmt.Errorf("%q must have a path, such as unix:/run/spillway.sock", address)
		}
		return Target{Plain(address, maxName), adminclient.Target{URL: "http://localhost", Dial: address}}, nil
	}
	u, err := parse(address)
	if err != nil {
		return Target{}, err
	}
	prefix := strings.TrimRight(u.Path, "/")
	return Target{Plain(shortest(u)+prefix, maxName), adminclient.Target{URL: u.Scheme + "://" + u.Host + prefix}}, nil
}

// shortest returns how people write the host of a URL.
func shortest(u *url.URL) string {
	if u.Scheme == "https" {
		return "https://" + u.Host
	}
	return u.Host
}

// parse returns the URL of an address, which has a port.
func parse(address string) (*url.URL, error) {
	text := address
	if !strings.Contains(text, "://") {
		if strings.Count(text, ":") > 1 && !strings.HasPrefix(text, "[") {
			text = "[" + text + "]" // IPv6
		}
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no address, must be HOST:PORT, http://HOST:PORT, https://HOST:PORT or unix:PATH", address)
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), defaultPort)
	}
	return u, nil
}
