package importer

import (
	"cmp"
	"net"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// server imports the file of a mongod or mongos, or an answer to getParameter.
func (m *mongoImport) server(root document.Part) {
	parameters := root.Get("setParameter")
	if !parameters.There() {
		parameters = root
	}
	m.parameters(parameters)
	m.address(root.Get("net"))
	m.serverTLS(root.At("net", "tls"))
	if n := root.At("net", "maxIncomingConnections"); n.There() {
		if most, ok := n.Count(); ok && most > 0 {
			m.set(n, "max_connections", "the server's own bound counts the connections of the proxy", func(x *config.Mongo) { x.MaxConnections = most })
		}
	}
	switch a := root.At("security", "authorization"); a.Text() {
	case "enabled":
		m.set(a, "authentication", "", func(x *config.Mongo) { x.Authentication = true })
	case "disabled":
		a.Carry("the default")
	}
	for _, part := range []string{"security", "net"} {
		for _, c := range root.Get(part).Fields() {
			switch document.LastField(c.Path) {
			case "key_file", "cluster_auth_mode", "cluster_ip_source_allowlist", "unix_domain_socket", "ipv6", "compression", "wire_object_check":
				c.LeaveAs(Detail, "it is between servers, or stays with the server", "")
			}
		}
	}
	for _, part := range []string{"storage", "systemLog", "processManagement", "replication", "sharding",
		"operationProfiling", "auditLog", "setParameter", "cloud"} {
		root.Get(part).LeaveAs(Detail, "it stays with the server", "")
	}
	root.Get("ok").LeaveAs(Detail, "it is part of the answer", "")
}

// address imports where the server listens: the proxy connects to it.
func (m *mongoImport) address(c document.Part) {
	port := c.Get("port")
	host := "127.0.0.1"
	bind := c.Get("bindIp")
	if first, _, _ := strings.Cut(bind.Text(), ","); first != "" && first != "0.0.0.0" && first != "*" && first != "localhost" && first[0] != '/' {
		host = strings.TrimSpace(first)
	}
	if len(m.x.Endpoints) > 0 || !port.There() && !bind.There() {
		return
	}
	number := cmp.Or(port.Text(), "27017")
	at := port
	if !at.There() {
		at = bind
	}
	m.set(at, "endpoints", "the proxy connects to it, and listens at another address",
		func(x *config.Mongo) { x.Endpoints = []string{net.JoinHostPort(host, number)} })
	bind.Change("mongo[].endpoints", "keep it, so that clients cannot go around the proxy")
	c.Get("bindIpAll").LeaveAs(Security, "clients can go around the proxy", "bindIp of the server: an address that only the proxy reaches")
}

// serverTLS imports how clients connect to the server: by the same TLS to the proxy, and
// from there to the server.
func (m *mongoImport) serverTLS(c document.Part) {
	mode := c.Get("mode")
	switch mode.Text() {
	case "":
		return
	case "disabled":
		mode.Carry("the default")
		return
	}
	m.exposed = true
	pair, ca := c.Get("certificateKeyFile"), c.Get("CAFile")
	switch {
	case pair.Text() == "":
		mode.LeaveAs(Security, "clients connect by TLS, and no file has the certificate", "tls.certificate and key")
		return
	case c.Get("certificateKeyFilePassword").There():
		pair.LeaveAs(Security, "the key is encrypted", "tls.certificate and key, a file without a password")
		return
	}
	m.exposed = false
	optional := isTrue(c.Get("allowConnectionsWithoutCertificates"))
	reason := ""
	if mode.Text() != "requireTLS" {
		reason = "all clients connect by TLS: a listener does not take both"
	}
	m.set(mode, "tls", reason, func(x *config.Mongo) {
		x.TLS = &config.ServerTLS{Certificate: pair.Text(), Key: pair.Text(), ClientCA: ca.Text(), Optional: optional && ca.Text() != ""}
		upstreamTLS(x).CA = ca.Text()
		if ca.Text() != "" && !optional { // the server asks the proxy for one, too
			x.UpstreamTLS.Certificate, x.UpstreamTLS.Key = pair.Text(), pair.Text()
		}
	})
	if m.x.TLS == nil {
		m.exposed = true
		return
	}
	pair.Carry("mongo[].tls.certificate")
	ca.Carry("mongo[].tls.client_ca")
	c.Get("allowConnectionsWithoutCertificates").Carry("mongo[].tls.optional")
	for _, name := range []string{"allowInvalidCertificates", "allowInvalidHostnames"} {
		c.Get(name).Change("mongo[].tls", "certificates that are sent are always verified")
	}
	for _, name := range []string{"clusterFile", "clusterPassword", "clusterCAFile", "logVersions"} {
		c.Get(name).LeaveAs(Detail, "it is between servers", "")
	}
	switch off := c.Get("disabledProtocols"); off.Text() {
	case "TLS1_0", "TLS1_1", "TLS1_0,TLS1_1":
		off.Carry("the default")
	}
}

// parameters imports the parameters of the ingress limiters, which have the same names here.
func (m *mongoImport) parameters(c document.Part) {
	number := func(name string, set func(*config.MongoParameters, float64)) {
		at := c.Get(name)
		if f, ok := at.Number(); ok {
			m.set(at, "parameters."+name, "", func(x *config.Mongo) { set(&x.Parameters, f) })
		}
	}
	truth := func(name string, set func(*config.MongoParameters, bool)) {
		if at := c.Get(name); at.Text() == "true" || at.Text() == "false" {
			m.set(at, "parameters."+name, "", func(x *config.Mongo) { set(&x.Parameters, at.Text() == "true") })
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
func (m *mongoImport) exemptions(c document.Part) {
	for _, f := range []struct {
		name string
		list func(*config.MongoParameters) *[]string
	}{
		{"ingressConnectionEstablishmentRateLimiterBypass", func(p *config.MongoParameters) *[]string { return &p.ConnectionBypass }},
		{"ingressRequestRateLimiterExemptions", func(p *config.MongoParameters) *[]string { return &p.RequestExemptions }},
		{"ingressRequestRateLimiterApplicationExemptions", func(p *config.MongoParameters) *[]string { return &p.RequestApplications }},
	} {
		at := c.Get(f.name)
		parts := at.List()
		for _, field := range []string{"ranges", "appNames"} { // the server has them in an object
			parts = append(parts, at.Get(field).List()...)
		}
		for _, part := range parts {
			m.set(part, "parameters."+f.name, "", func(x *config.Mongo) {
				list := f.list(&x.Parameters)
				*list = append((*list)[:len(*list):len(*list)], part.Text())
			})
		}
	}
}
