package importer

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// DefaultMongoListen is where clients of MongoDB connect to, if Options do not say it.
const DefaultMongoListen = "127.0.0.1:27018"

// defaultMongoUpstream is a server at its usual port.
const defaultMongoUpstream = "127.0.0.1:27017"

// MongoDB imports a listener for clients of MongoDB from a connection string, the
// configuration file of a mongod or mongos, or its parameters, as getParameter answers
// them. Several documents describe one listener; where two set a field, the last one
// counts, but for endpoints the first one does.
//
// Documents that begin with mongodb:// or mongodb+srv:// are connection strings.
func MongoDB(docs []Document, o Options) (*Result, error) {
	m := mongoImport{builder: newBuilder(o)}
	m.x = config.Mongo{Address: cmp.Or(o.Listen, DefaultMongoListen)}
	roots, err := m.documents(docs, uriOrTree)
	if err != nil {
		return nil, err
	}
	for _, root := range roots {
		if root.Get("scheme").There() && root.Get("hosts").There() {
			m.uri(root)
		} else {
			m.server(root)
		}
	}
	m.nothing = len(m.Carried) == 0
	return m.finish(roots, "the proxy has nothing like it", m.nothing || m.exposed, func() {
		if len(m.x.Endpoints) == 0 {
			m.x.Endpoints = []string{cmp.Or(o.Upstream, defaultMongoUpstream)}
			m.Notef("no document has the address of a server: the endpoint is %s", m.x.Endpoints[0])
		}
		m.config.Mongo = []config.Mongo{m.x}
		m.Notef("gates observe, and reject nothing: mode: enforce makes them enforce")
	})
}

type mongoImport struct {
	*builder

	x       config.Mongo
	exposed bool // the listener would be without the TLS that the server has
}

func uriOrTree(d Document) (any, error) {
	text := strings.TrimSpace(string(d.Text))
	if len(d.Text) > maxSize || !strings.HasPrefix(text, "mongodb://") && !strings.HasPrefix(text, "mongodb+srv://") {
		return tree(d)
	}
	value, err := parseURI(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name, err) // without the text, which may have a password
	}
	return value, nil
}

func (m *mongoImport) uri(root document.Part) {
	options := root.Get("options")
	tls, scheme := options.Get("tls").Or(options.Get("ssl")), root.Get("scheme")
	if scheme.Text() == "mongodb+srv" {
		root.Get("hosts").LeaveAs(Traffic, "names of DNS seed lists are not looked up", "endpoints: host and port of each mongos")
		if tls.Text() != "false" {
			m.x.UpstreamTLS = new(config.ClientTLS)
		}
		scheme.Change("mongo[].upstream_tls", "the servers are connected to by TLS, as mongodb+srv implies")
	} else {
		scheme.Carry("mongo[]")
		m.hosts(root.Get("hosts"), options.Get("replicaset"))
	}
	if tls.Text() == "false" {
		tls.Carry("the default")
	} else if tls.There() {
		assign(m.builder, &m.x, tls, "upstream_tls", "", cmp.Or(m.x.UpstreamTLS, new(config.ClientTLS)))
	}
	m.files(options)
	for _, name := range []string{"tlsinsecure", "tlsallowinvalidcertificates", "tlsallowinvalidhostnames"} {
		options.Get(name).Change("mongo[].upstream_tls", "certificates of servers are always verified")
	}
	m.credentials(root, options)
	m.behaviour(options)
}

func (m *mongoImport) hosts(c, set document.Part) {
	if set.There() && len(c.List()) > 1 {
		set.LeaveAs(Traffic, "a listener is for one server, or for several mongos; each member of a replica set needs a separate listener",
			"one listener for each member, with topology: pass and the addresses of the listeners in the replica set configuration")
		c.LeaveAs(Traffic, "they are members of a replica set", "one listener for each")
		return
	}
	set.Change("mongo[].topology", "drivers see the proxy as a mongos (topology: hide)")
	if len(m.x.Endpoints) > 0 {
		c.LeaveAs(Traffic, "another document has the servers", "")
		return
	}
	for _, host := range c.List() {
		text := host.Text()
		if _, _, err := net.SplitHostPort(text); err != nil {
			text = net.JoinHostPort(strings.Trim(text, "[]"), "27017")
		}
		assign(m.builder, &m.x, host, "endpoints", "", append(slices.Clone(m.x.Endpoints), text))
	}
}

func (m *mongoImport) files(options document.Part) {
	put(m.builder, &m.x, options.Get("tlscafile"), "upstream_tls.ca", "")
	pair := options.Get("tlscertificatekeyfile")
	if options.Get("tlscertificatekeyfilepassword").There() {
		pair.LeaveAs(Security, "the key is encrypted", "upstream_tls.certificate and key, a file without a password")
		return
	}
	if pair.There() {
		config.Field(&m.x, "upstream_tls.key").SetString(pair.Text()) // one file has both
		put(m.builder, &m.x, pair, "upstream_tls.certificate", "all clients of the proxy share the certificate; MONGODB-X509 through it needs shared_x509")
	}
}

// credentials imports the presence of a user. Clients authenticate themselves to the server.
func (m *mongoImport) credentials(root, options document.Part) {
	const why = "clients authenticate to the server through the proxy, which has no credentials"
	mechanism := options.Get("authmechanism")
	if mechanism.Text() == "MONGODB-X509" {
		mechanism.LeaveAs(Security, "the server would see the certificate of the proxy and not that of the client",
			"tls_passthrough, or shared_x509 if all clients are one user")
	}
	if user := root.Get("username"); user.There() || mechanism.There() {
		m.x.Authentication = true
		user.Change("mongo[].authentication", why)
	}
	for _, c := range []document.Part{root.Get("password"), mechanism, options.Get("authsource"), options.Get("authmechanismproperties"), root.Get("database")} {
		c.LeaveAs(Detail, why, "the connection string of the client")
	}
}

func (m *mongoImport) behaviour(options document.Part) {
	timeout := options.Get("connecttimeoutms")
	if n, ok := timeout.Count(); ok && n > 0 {
		assign(m.builder, &m.x, timeout, "connect_timeout", "", time.Duration(n)*time.Millisecond)
	}
	for _, kind := range []string{"reads", "writes"} {
		switch c := options.Get("retry" + kind); c.Text() {
		case "false":
			assign(m.builder, &m.x, c, "retry.no_"+kind, "", true)
		case "true":
			c.Carry("the default")
		}
	}
	put(m.builder, &m.x, options.Get("maxadaptiveretries"), "retry.max_retries", "")
	options.Get("directconnection").Change("mongo[].topology", "drivers see the proxy as a mongos, and connect to it only")
	for _, c := range options.Fields() {
		rank := Detail
		if strings.Contains(c.Path, "tls") || strings.Contains(c.Path, "ssl") {
			rank = Security
		}
		c.LeaveAs(rank, "it is for drivers, and stays in the connection strings of clients", "")
	}
}
