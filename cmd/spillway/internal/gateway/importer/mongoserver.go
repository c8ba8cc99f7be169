package importer

import (
	"cmp"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// server imports the file of a mongod or mongos, or an answer to getParameter.
func (m *mongoImport) server(root document.Part) {
	m.parameters(root.Get("setParameter").Or(root))
	m.address(root.Get("net"))
	m.serverTLS(root.At("net", "tls"))
	put(m.builder, &m.x, root.At("net", "maxIncomingConnections"), "max_connections", "the server's own bound counts the connections of the proxy")
	m.authentication(root.Get("security"))
	for _, part := range []string{"security", "net"} {
		for _, name := range []string{"clusterAuthMode", "clusterIpSourceAllowlist", "compression", "ipv6", "keyFile", "unixDomainSocket", "wireObjectCheck"} {
			root.At(part, name).LeaveAs(Detail, "it is between servers, or stays with the server", "")
		}
	}
	for _, part := range []string{"storage", "systemLog", "processManagement", "replication", "sharding",
		"operationProfiling", "auditLog", "setParameter", "cloud"} {
		root.Get(part).LeaveAs(Detail, "it stays with the server", "")
	}
	root.Get("ok").LeaveAs(Detail, "it is part of the answer", "")
}

// authentication imports whether clients must authenticate. They must, too, where servers do to one another.
func (m *mongoImport) authentication(c document.Part) {
	mode := c.Get("clusterAuthMode")
	if mode.Text() == "keyFile" { // the default, which means something with a file
		mode = document.Part{}
	}
	for _, at := range []document.Part{c.Get("keyFile"), mode} {
		if at.Text() != "" && !isTrue(c.Get("transitionToAuth")) {
			assign(m.builder, &m.x, at, "authentication", "servers that prove who they are to one another demand it of clients, too", true)
		}
	}
	switch a := c.Get("authorization"); a.Text() {
	case "enabled":
		assign(m.builder, &m.x, a, "authentication", "", true)
	case "disabled":
		a.Carry("the default")
	}
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
	address := net.JoinHostPort(host, cmp.Or(port.Text(), "27017"))
	assign(m.builder, &m.x, port.Or(bind), "endpoints", "the proxy connects to it, and listens at another address", []string{address})
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
	m.exposed = true // until all of it is carried
	pair, ca := c.Get("certificateKeyFile"), c.Get("CAFile")
	switch {
	case pair.Text() == "":
		mode.LeaveAs(Security, "clients connect by TLS, and no file has the certificate", "tls.certificate and key")
		return
	case c.Get("certificateKeyFilePassword").There():
		pair.LeaveAs(Security, "the key is encrypted", "tls.certificate and key, a file without a password")
		return
	}
	optional := isTrue(c.Get("allowConnectionsWithoutCertificates"))
	reason := ""
	if mode.Text() != "requireTLS" {
		reason = "all clients connect by TLS: a listener does not take both"
	}
	next := config.Clone(&m.x)
	next.TLS = &config.ServerTLS{Certificate: pair.Text(), Key: pair.Text(), ClientCA: ca.Text(), Optional: optional && ca.Text() != ""}
	if next.UpstreamTLS = cmp.Or(next.UpstreamTLS, new(config.ClientTLS)); ca.Text() != "" && !optional { // the server asks the proxy for one, too
		next.UpstreamTLS.Certificate, next.UpstreamTLS.Key = pair.Text(), pair.Text()
	}
	next.UpstreamTLS.CA = ca.Text()
	if m.exposed = !try(m.builder, &m.x, next, mode, "tls", reason); m.exposed {
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
	var lists []string
	for field, value := range reflect.ValueOf(m.x.Parameters).Fields() {
		name := field.Tag.Get("yaml")
		at := c.Get(name)
		switch value.Interface().(type) {
		case bool, *bool:
			if at.Text() == "true" || at.Text() == "false" {
				assign(m.builder, &m.x, at, "parameters."+name, "", at.Text() == "true")
			}
		case int, float64:
			if f, ok := at.Number(); ok {
				assign(m.builder, &m.x, at, "parameters."+name, "", f)
			}
		default:
			lists = append(lists, name)
		}
	}
	for _, name := range lists {
		m.exemptions(c.Get(name), name)
	}
	for _, limiter := range []string{"ingressConnectionEstablishment", "ingressRequestAdmission"} {
		if c.Get(limiter+"RatePerSec").There() && !c.Get(limiter+"BurstCapacitySecs").There() {
			m.Notef("%sBurstCapacitySecs is missing: the limiter saves up for 1 s, where that of a server saves up without bound", limiter)
		}
	}
}

// exemptions imports who is exempt from a limiter.
func (m *mongoImport) exemptions(c document.Part, name string) {
	parts := c.List()
	for _, field := range []string{"ranges", "appNames"} { // the server has them in an object
		parts = append(parts, c.Get(field).List()...)
	}
	for _, part := range parts {
		if part.There() {
			before, _ := reflect.TypeAssert[[]string](config.Field(&m.x, "parameters."+name))
			assign(m.builder, &m.x, part, "parameters."+name, "", append(slices.Clone(before), part.Text()))
		}
	}
}
