package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/explain"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
)

// explainCommand has the arguments of "spillway explain".
type explainCommand struct {
	output
	configFile
	URL      string   `arg:"" optional:"" help:"Path or URL of the request; the host of a URL is matched, too (default /)."`
	Method   string   `short:"X" placeholder:"METHOD" help:"Method of the request (default GET, or POST with a body)."`
	Header   []string `short:"H" sep:"none" placeholder:"NAME:VALUE" help:"Header of the request; can be repeated."`
	Body     int64    `placeholder:"BYTES" help:"Length of the body of the request."`
	HTTP2    bool     `name:"http2" env:"SPILLWAY_HTTP2" help:"Use HTTP/2; gRPC calls always do."`
	Listener string   `placeholder:"NAME" help:"Name of the listener that gets the request (default the first one)."`
	Client   string   `placeholder:"NAME" help:"Identity in the client certificate, such as uri:spiffe://shop/cart (default none)."`
	Files    int      `name:"open-files" placeholder:"N" help:"Limit on open files of the proxy, which lowers caps (default the limit of this program)."`
	From     string   `placeholder:"IP" default:"192.0.2.1" help:"Address of the client, for exemptions (default ${default})."`
}

func (explainCommand) Help() string {
	return "The code of the proxy serves the request, with simulated endpoints and no other request in flight. It opens no port " +
		"and sends nothing.\n\n" +
		"  spillway explain proxy.yaml -H 'x-request-criticality: SHEDDABLE' http://api.example.com/jobs/7"
}

// maxBody is the longest simulated body.
const maxBody = 64 << 20

func (c *explainCommand) Run(w streams) error {
	if c.Config != "" && c.URL == "" {
		c.File, c.URL = "", c.File // the only argument is the URL
	}
	if err := c.named(); err != nil {
		return err
	}
	wanted, err := config.Open(c.File)
	if err != nil {
		return usage{err}
	}
	if c.Files < 0 {
		return usage{fmt.Errorf("--open-files is %d, must be 1 or more", c.Files)}
	}
	r, err := c.request()
	if err != nil {
		return usage{err}
	}
	e, err := explain.Explain(wanted, explain.Question{Listener: c.Listener, Client: c.Client, Request: r, Files: cmp.Or(c.Files, resources.OpenFiles())})
	if err != nil {
		return usage{err}
	}
	return c.tell(w, e.Write, e, nil)
}

// request makes the request, as a server reads one.
func (c *explainCommand) request() (*http.Request, error) {
	if c.Body < 0 || c.Body > maxBody {
		return nil, fmt.Errorf("--body is %d, must be 0 to %d", c.Body, maxBody)
	}
	from, err := netip.ParseAddr(strings.Trim(c.From, "[]"))
	if err != nil {
		return nil, fmt.Errorf("--from is %.60q, must be an address such as 192.0.2.1", c.From)
	}
	method := "GET"
	if c.Body > 0 {
		method = "POST"
	}
	r := &http.Request{
		Method: cmp.Or(c.Method, method), Header: make(http.Header), ContentLength: c.Body,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: netip.AddrPortFrom(from, 1024).String(),
	}
	if !httpguts.ValidHeaderFieldName(r.Method) { // both are tokens
		return nil, fmt.Errorf("--method is %.60q, must be a method such as GET", r.Method)
	}
	if err := c.target(r); err != nil {
		return nil, err
	}
	if err := c.headers(r); err != nil {
		return nil, err
	}
	if c.HTTP2 || strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
	}
	return r, nil
}

// target sets host and target of the request. A path is taken byte for byte, since the proxy judges what clients write:
// //report is no host. What follows the host of a URL is taken so, too, but for the fragment, which clients do not send.
func (c *explainCommand) target(r *http.Request) (err error) {
	r.Host, r.RequestURI = "localhost", c.URL
	if _, rest, ok := strings.Cut(c.URL, "://"); ok && !strings.HasPrefix(c.URL, "/") {
		u, err := url.Parse(c.URL)
		if err != nil || u.Host == "" {
			return fmt.Errorf("%.200q is neither a path nor a URL", c.URL)
		}
		rest, _, _ = strings.Cut(rest, "#")
		r.Host, r.RequestURI = u.Host, ""
		if at := strings.IndexAny(rest, "/?"); at >= 0 {
			r.RequestURI = rest[at:]
		}
	}
	if r.RequestURI == "" || r.RequestURI[0] == '?' {
		r.RequestURI = "/" + r.RequestURI
	}
	if r.URL, err = url.ParseRequestURI(r.RequestURI); err != nil || r.RequestURI[0] != '/' {
		return fmt.Errorf("%.200q is neither a path nor a URL", c.URL)
	}
	return nil
}

func (c *explainCommand) headers(r *http.Request) error {
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("--header is %.200q, must be a name, a colon and a value", h)
		}
		if strings.EqualFold(name, "Host") {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	return nil
}
