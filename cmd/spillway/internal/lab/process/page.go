package process

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/adminclient"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/spilladmin"
)

// ServerName is the name of a protected Backend on its page for operators.
const ServerName = "backend"

// An operatorsPage is the page for operators of a protected Backend, which has a separate address for it. It is nil for a Backend without
// protection.
type operatorsPage struct {
	*spilladmin.Page
	ln net.Listener
}

// servePage serves a page until the process ends.
func servePage() (*operatorsPage, error) {
	page, err := spilladmin.New(spilladmin.Config{Name: ServerName})
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { _ = newServer(page).Serve(ln) }() // the process ends with its calls, not with its page
	return &operatorsPage{page, ln}, nil
}

// url returns the URL of the page; it is empty for a nil page.
func (p *operatorsPage) url() string {
	if p == nil {
		return ""
	}
	return "http://" + p.ln.Addr().String() + "/"
}

// The bounds of an answer of the page.
const (
	pageTimeout = 2 * time.Second
	pageSize    = 1 << 20
)

// ReadPage returns what the page for operators of the Backend, at the URL Page, says now.
func (p *Process) ReadPage(ctx context.Context) (*admin.State, error) {
	client := adminclient.New(adminclient.Config{Timeout: pageTimeout, MaxBody: pageSize})
	defer client.Close()
	text, err := client.Do(ctx, adminclient.Target{URL: strings.TrimSuffix(p.Page, "/")}, http.MethodGet, "/api/v1/state", "")
	if err != nil {
		return nil, err
	}
	s := new(admin.State)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, err
	}
	return s, nil
}
