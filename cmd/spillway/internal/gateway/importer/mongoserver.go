package importer

import (
	"net"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// server imports the file of a mongod or mongos, or an answer to getParameter.
func (m *mongoImport) server(root cursor) {
	parameters := root.get("setParameter")
	if !parameters.there() {
		parameters = root
	}
	m.parameters(parameters)
	m.address(root.get("net"))
	m.serverTLS(root.at("net", "tls"))
	if n := root.at("net", "maxIncomingConnections"); n.there() {
		if most, ok := n.count(); ok && most > 0 {
			m.set(n, "max_connections", "the server's own bound counts the connections of the proxy", func(x *config.Mongo) { x.MaxConnections = most })
		}
	}
	switch a := root.at("security", "authorization"); a.text() {
	case "enabled":
		m.set(a, "authentication", "", func(x *config.Mongo) { x.Authentication = true })
	case "disabled":
		a.carry("the default")
	}
	for _, part := range []string{"security", "net"} {
		for _, c := range root.get(part).fields() {
			switch lastField(c.path) {
			case "key_file", "cluster_auth_mode", "cluster_ip_source_allowlist", "unix_domain_socket", "ipv6", "compression", "wire_object_check":
				c.leaveAs(Detail, "it is between servers, or stays with the server", "")
			}
		}
	}
	for _, part := range []string{"storage", "systemLog", "processManagement", "replication", "sharding",
		"operationProfiling", "auditLog", "setParameter", "cloud"} {
		root.get(part).leaveAs(Detail, "it stays with the server", "")
	}
	root.get("ok").leaveAs(Detail, "it is part of the answer", "")
}

// address imports where the server listens: the proxy connects to it.
func (m *mongoImport) address(c cursor) {
	port := c.get("port")
	host := "127.0.0.1"
	bind := c.get("bindIp")
	if first, _, _ := strings.Cut(bind.text(), ","); first != "" && first != "0.0.0.0" && first != "*" && first != "localhost" && first[0] != '/' {
		host = strings.TrimSpace(first)
	}
	if len(m.x.Endpoints) > 0 || !port.there() && !bind.there() {
		return
	}
	number := port.text()
	if number == "" {
		number = "27017"
	}
	at := port
	if !at.there() {
		at = bind
	}
	m.set(at, "endpoints", "the proxy connects to it, and listens at another address",
		func(x *config.Mongo) { x.Endpoints = []string{net.JoinHostPort(host, number)} })
	bind.changed("mongo[].endpoints", "keep it, so that clients cannot go around the proxy")
	c.get("bindIpAll").leaveAs(Security, "clients can go around the proxy", "bindIp of the server: an address that only the proxy reaches")
}

// serverTLS imports how clients connect to the server: by the same TLS to the proxy, and
// from there to the server.
func (m *mongoImport) serverTLS(c cursor) {
	mode := c.get("mode")
	switch mode.text() {
	case "":
		return
	case "disabled":
		mode.carry("the default")
		return
	}
	m.exposed = true
	pair, ca := c.get("certificateKeyFile"), c.get("CAFile")
	switch {
	case pair.text() == "":
		mode.leaveAs(Security, "clients connect by TLS, and no file has the certificate", "tls.certificate and key")
		return
	case c.get("certificateKeyFilePassword").there():
		pair.leaveAs(Security, "the key is encrypted", "tls.certificate and key, a file without a password")
		return
	}
	m.exposed = false
	optional := isTrue(c.get("allowConnectionsWithoutCertificates"))
	reason := ""
	if mode.text() != "requireTLS" {
		reason = "all clients connect by TLS: a listener does not take both"
	}
	m.set(mode, "tls", reason, func(x *config.Mongo) {
		x.TLS = &config.ServerTLS{Certificate: pair.text(), Key: pair.text(), ClientCA: ca.text(), Optional: optional && ca.text() != ""}
		upstreamTLS(x).CA = ca.text()
		if ca.text() != "" && !optional { // the server asks the proxy for one, too
			x.UpstreamTLS.Certificate, x.UpstreamTLS.Key = pair.text(), pair.text()
		}
	})
	if m.x.TLS == nil {
		m.exposed = true
		return
	}
	pair.carry("mongo[].tls.certificate")
	ca.carry("mongo[].tls.client_ca")
	c.get("allowConnectionsWithoutCertificates").carry("mongo[].tls.optional")
	for _, name := range []string{"allowInvalidCertificates", "allowInvalidHostnames"} {
		c.get(name).changed("mongo[].tls", "certificates that are sent are always verified")
	}
	for _, name := range []string{"clusterFile", "clusterPassword", "clusterCAFile", "logVersions"} {
		c.get(name).leaveAs(Detail, "it is between servers", "")
	}
	switch off := c.get("disabledProtocols"); off.text() {
	case "TLS1_0", "TLS1_1", "TLS1_0,TLS1_1":
		off.carry("the default")
	}
}

// parameters imports the parameters of the ingress limiters, which have the same names here.
func (m *mongoImport) parameters(c cursor) {
	number := func(name string, set func(*config.MongoParameters, float64)) {
		at := c.get(name)
		if f, ok := at.number(); ok {
			m.set(at, "parameters."+name, "", func(x *config.Mongo) { set(&x.Parameters, f) })
		}
	}
	truth := func(name string, set func(*config.MongoParameters, bool)) {
		if at := c.get(name); at.text() == "true" || at.text() == "false" {
			m.set(at, "parameters."+name, "", func(x *config.Mongo) { set(&x.Parameters, at.text() == "true") })
		}
	}
	truth("ingressConnectionEstablishmentRateLimiterEnabled", func(p *config.MongoParameters, v bool) { p.ConnectionEnabled = v })
	number("ingressConnectionEstablishmentRatePerSec", func(p *config.MongoParameters, f float64) { p.ConnectionRate = f })
	number("ingressConnectionEstablishmentBurstCapacitySecs", func(p *config.MongoParameters, f float64) { p.ConnectionBurst = f })
	number("ingressConnectionEstablishmentMaxQueueDepth", func(p *config.MongoParameters, f float64) { p.ConnectionDepth = int(f) })
	truth("ingressRequestRateLimiterEnabled", func(p *config.MongoParameters, v bool) { p.RequestEnabled = v })
	number("ingressRequestAdmissionRatePerSec", func(p *config.MongoParameters, f float64) { p.RequestRate = f })
	number("ingressRequestAdmissionBurstCapacitySecs", func(p *config.MongoParameters, f float64) { p.RequestBurst = f })
	number("ingressRequestAdmissionMaxQueueDepth", func(p *config.MongoParameters, f float64) { p.RequestDepth = int(f) })
	truth("ingressRequestRateLimiterAllowRetries", func(p *config.MongoParameters, v bool) { p.AllowRetries = &v })
	number("externalClientBaseBackoffMS", func(p *config.MongoParameters, f float64) { p.BaseBackoffMS = int(f) })
	m.exemptions(c)
}

// exemptions imports who is exempt from the limiters.
func (m *mongoImport) exemptions(c cursor) {
	for _, f := range []struct {
		name string
		list func(*config.MongoParameters) *[]string
	}{
		{"ingressConnectionEstablishmentRateLimiterBypass", func(p *config.MongoParameters) *[]string { return &p.ConnectionBypass }},
		{"ingressRequestRateLimiterExemptions", func(p *config.MongoParameters) *[]string { return &p.RequestExemptions }},
		{"ingressRequestRateLimiterApplicationExemptions", func(p *config.MongoParameters) *[]string { return &p.RequestApplications }},
	} {
		at := c.get(f.name)
		parts := at.list()
		for _, field := range []string{"ranges", "appNames"} { // the server has them in an object
			parts = append(parts, at.get(field).list()...)
		}
		for _, part := range parts {
			m.set(part, "parameters."+f.name, "", func(x *config.Mongo) {
				list := f.list(&x.Parameters)
				*list = append((*list)[:len(*list):len(*list)], part.text())
			})
		}
	}
}
