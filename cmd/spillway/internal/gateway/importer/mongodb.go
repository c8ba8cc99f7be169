package importer

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// DefaultMongoListen is where clients of MongoDB connect to, if Options do not say it.
const DefaultMongoListen = "127.0.0.1:27018"

// defaultMongoUpstream is a server at its usual port.
const defaultMongoUpstream = "127.0.0.1:27017"

// MongoDB imports a listener for clients of MongoDB from a connection string, the
// configuration file of a mongod or mongos, or its parameters, as getParameter answers
// them. Several documents describe one listener; where two set a field, the first one
// counts.
//
// Documents that begin with mongodb:// or mongodb+srv:// are connection strings.
func MongoDB(docs []Document, o Options) (*Result, error) {
	m := mongoImport{builder: newBuilder(o)}
	m.x = config.Mongo{Address: cmp.Or(o.Listen, DefaultMongoListen)}
	if err := unique(docs); err != nil {
		return nil, err
	}
	var roots []cursor
	for _, d := range docs {
		root, err := m.document(d, len(docs) > 1)
		if err != nil {
			return nil, err
		}
		roots = append(roots, root)
	}
	for _, root := range roots {
		if root.get("scheme").there() && root.get("hosts").there() {
			m.uri(root)
		} else {
			m.server(root)
		}
	}
	m.result.nothing = len(m.result.Carried) == 0
	return m.done(roots, cmp.Or(o.Upstream, defaultMongoUpstream))
}

type mongoImport struct {
	*builder

	x       config.Mongo
	exposed bool // the listener would be without the TLS that the server has
}

// document reads a connection string, or a file in YAML or JSON.
func (m *mongoImport) document(d Document, several bool) (root cursor, err error) {
	text := strings.TrimSpace(string(d.Text))
	if len(d.Text) <= maxSize && (strings.HasPrefix(text, "mongodb://") || strings.HasPrefix(text, "mongodb+srv://")) {
		value, err := parseURI(text)
		if err != nil {
			return root, fmt.Errorf("%s: %w", d.Name, err) // without the text, which may have a password
		}
		root = cursor{report: m.report, value: value}
	} else if root, err = m.read(d); err != nil {
		return root, err
	}
	if several {
		root.path = d.Name + ": "
	}
	return root, nil
}

// done ends the import.
func (m *mongoImport) done(roots []cursor, upstream string) (*Result, error) {
	for _, root := range roots {
		root.leave("the proxy has nothing like it", "")
	}
	defer m.result.rank()
	if m.result.nothing || m.exposed {
		return &m.result, nil
	}
	if len(m.x.Endpoints) == 0 {
		m.x.Endpoints = []string{upstream}
		m.notef("no document has the address of a server: the endpoint is %s", m.x.Endpoints[0])
	}
	m.config.Mongo = []config.Mongo{m.x}
	m.notef("gates observe, and reject nothing: mode: enforce makes them enforce")
	if err := m.config.Check(); err != nil {
		return nil, fmt.Errorf("what was imported is no good configuration: %w", err)
	}
	m.result.Config = &m.config
	return &m.result, nil
}

// set changes the listener as a leaf says, unless the proxy does not accept that.
func (m *mongoImport) set(c cursor, field, reason string, set func(*config.Mongo)) {
	if !c.there() {
		return
	}
	next := m.x
	next.Endpoints = slices.Clone(m.x.Endpoints)
	if t := m.x.UpstreamTLS; t != nil {
		next.UpstreamTLS = new(*t)
	}
	set(&next)
	trial := next
	if len(trial.Endpoints) == 0 {
		trial.Endpoints = []string{defaultMongoUpstream}
	}
	whole := config.Config{Mongo: []config.Mongo{trial}}
	m.settle(c, "mongo[]."+field, reason, whole.Check(), func() { m.x = next })
}

// upstreamTLS is the TLS to the servers that a document asks for.
func upstreamTLS(x *config.Mongo) *config.ClientTLS {
	if x.UpstreamTLS == nil {
		x.UpstreamTLS = new(config.ClientTLS)
	}
	return x.UpstreamTLS
}

// uri imports a connection string.
func (m *mongoImport) uri(root cursor) {
	options := root.get("options")
	tls := options.get("tls")
	if !tls.there() {
		tls = options.get("ssl")
	}
	srv := root.get("scheme").text() == "mongodb+srv"
	switch {
	case srv:
		root.get("hosts").leaveAs(Traffic, "names of DNS seed lists are not looked up", "endpoints: host and port of each mongos")
		if tls.text() != "false" {
			m.x.UpstreamTLS = new(config.ClientTLS)
		}
		root.get("scheme").changed("mongo[].upstream_tls", "the servers are connected to by TLS, as mongodb+srv implies")
	default:
		root.get("scheme").carry("mongo[]")
		m.hosts(root.get("hosts"), options.get("replicaset"))
	}
	if tls.text() == "false" {
		tls.carry("the default")
	} else {
		m.set(tls, "upstream_tls", "", func(x *config.Mongo) { upstreamTLS(x) })
	}
	m.files(options)
	for _, name := range []string{"tlsinsecure", "tlsallowinvalidcertificates", "tlsallowinvalidhostnames"} {
		options.get(name).changed("mongo[].upstream_tls", "certificates of servers are always verified")
	}
	m.credentials(root, options)
	m.behaviour(options)
}

// hosts imports the servers of a connection string.
func (m *mongoImport) hosts(c, set cursor) {
	if set.there() && len(c.list()) > 1 {
		set.leaveAs(Traffic, "a listener is for one server, or for several mongos; each member of a replica set needs a separate listener",
			"one listener for each member, with topology: pass and the addresses of the listeners in the replica set configuration")
		c.leaveAs(Traffic, "they are members of a replica set", "one listener for each")
		return
	}
	set.changed("mongo[].topology", "drivers see the proxy as a mongos (topology: hide)")
	if len(m.x.Endpoints) > 0 {
		c.leaveAs(Traffic, "another document has the servers", "")
		return
	}
	for _, host := range c.list() {
		text := host.text()
		if _, _, err := net.SplitHostPort(text); err != nil {
			text = net.JoinHostPort(strings.Trim(text, "[]"), "27017")
		}
		m.set(host, "endpoints", "", func(x *config.Mongo) { x.Endpoints = append(x.Endpoints, text) })
	}
}

// files imports the files of TLS to the servers.
func (m *mongoImport) files(options cursor) {
	if ca := options.get("tlscafile"); ca.there() {
		m.set(ca, "upstream_tls.ca", "", func(x *config.Mongo) { upstreamTLS(x).CA = ca.text() })
	}
	pair := options.get("tlscertificatekeyfile")
	if options.get("tlscertificatekeyfilepassword").there() {
		pair.leaveAs(Security, "the key is encrypted", "upstream_tls.certificate and key, a file without a password")
		return
	}
	if pair.there() {
		m.set(pair, "upstream_tls.certificate", "all clients of the proxy share the certificate; MONGODB-X509 through it needs shared_x509", func(x *config.Mongo) {
			t := upstreamTLS(x)
			t.Certificate, t.Key = pair.text(), pair.text()
		})
	}
}

// credentials imports the presence of a user. Clients authenticate themselves to the server.
func (m *mongoImport) credentials(root, options cursor) {
	const why = "clients authenticate to the server through the proxy, which has no credentials"
	mechanism := options.get("authmechanism")
	if mechanism.text() == "MONGODB-X509" {
		mechanism.leaveAs(Security, "the server would see the certificate of the proxy and not that of the client",
			"tls_passthrough, or shared_x509 if all clients are one user")
	}
	if user := root.get("username"); user.there() || mechanism.there() {
		m.x.Authentication = true
		user.changed("mongo[].authentication", why)
	}
	for _, c := range []cursor{root.get("password"), mechanism, options.get("authsource"), options.get("authmechanismproperties"), root.get("database")} {
		c.leaveAs(Detail, why, "the connection string of the client")
	}
}

// behaviour imports timeouts and retries.
func (m *mongoImport) behaviour(options cursor) {
	if timeout := options.get("connecttimeoutms"); timeout.there() {
		if n, ok := timeout.count(); ok && n > 0 {
			m.set(timeout, "connect_timeout", "", func(x *config.Mongo) { x.ConnectTimeout = time.Duration(n) * time.Millisecond })
		}
	}
	for _, f := range []struct {
		name, field string
		off         func(*config.Mongo)
	}{
		{"retryreads", "retry.no_reads", func(x *config.Mongo) { x.Retry.NoReads = true }},
		{"retrywrites", "retry.no_writes", func(x *config.Mongo) { x.Retry.NoWrites = true }},
	} {
		switch c := options.get(f.name); c.text() {
		case "false":
			m.set(c, f.field, "", f.off)
		case "true":
			c.carry("the default")
		}
	}
	if n, ok := options.get("maxadaptiveretries").count(); ok && n > 0 {
		m.set(options.get("maxadaptiveretries"), "retry.max_retries", "", func(x *config.Mongo) { x.Retry.MaxRetries = n })
	}
	for _, c := range options.fields() {
		switch lastField(c.path) {
		case "directconnection":
			c.changed("mongo[].topology", "drivers see the proxy as a mongos, and connect to it only")
		default:
			c.leaveAs(rankOfOption(c.path), "it is for drivers, and stays in the connection strings of clients", "")
		}
	}
}

// rankOfOption returns the rank of an option of a connection string that drivers keep.
func rankOfOption(path string) Rank {
	if strings.Contains(path, "tls") || strings.Contains(path, "ssl") {
		return Security
	}
	return Detail
}
