package mongoproxy

import (
	"net/netip"
	"sync"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/internal/admin/decisions"
)

// A source describes the command in progress to the log of decisions. Gates that only observe
// report from goroutines of their own, so it copies what it needs.
type source struct {
	listener *listener
	address  netip.Addr

	mu       sync.Mutex
	user     string // empty before authentication
	name     [maxSourceText]byte
	database [maxSourceText]byte
	lengths  [2]int // of name and database
}

// maxSourceText is the longest name of a database in MongoDB, and longer than the name of any
// command.
const maxSourceText = 63

func (s *source) set(cmd *wire.Command, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user = user
	s.lengths = [2]int{copy(s.name[:], cmd.Name), copy(s.database[:], cmd.Database)}
}

// Describe implements [decisions.Source]. The path of a command is /database/name.
func (s *source) Describe(d *decisions.Decision) {
	s.mu.Lock()
	path := "/" + string(s.database[:s.lengths[1]]) + "/" + string(s.name[:s.lengths[0]])
	s.mu.Unlock()
	d.Mongo = true
	d.Listener, d.Route, d.Path, d.Caller = s.listener.settings.Load().config.Name, "", decisions.Clean(path), s.Caller()
}

// Caller implements [decisions.Source]: the user, or the network of a client without one.
func (s *source) Caller() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.user != "" {
		return decisions.Clean(s.user)
	}
	return decisions.Network(s.address)
}

// Place implements [decisions.Source]: the calls of all policies have it.
func (s *source) Place() (route, customer string) { return "", "" }
