package importer

import (
	"slices"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// serverTLS returns the TLS of a filter chain, nil if connections are in the clear. A
// problem means that it is encrypted in Envoy in a way that cannot be imported: then what was
// reported must be taken back.
func (e *envoyImport) serverTLS(owner string, chain document.Part) (_ *config.ServerTLS, problem string) {
	const to = "listeners[]."
	socket := chain.Get("transport_socket")
	t := socket.Get("typed_config")
	kind := t.Get("@type")
	switch {
	case chain.Get("tls_context").There():
		t = chain.Get("tls_context")
	case !socket.There(), strings.HasSuffix(kind.Text(), ".RawBuffer"):
		socket.Carry(to + "address")
		return nil, ""
	case !strings.HasSuffix(kind.Text(), ".DownstreamTlsContext"):
		return nil, "its transport socket is not TLS as this proxy has it"
	}
	carry(to+"tls", socket.Get("name"), kind)
	common := t.Get("common_tls_context")
	pair, problem := e.pair(owner, to, common)
	if problem != "" {
		return nil, problem
	}
	s := &config.ServerTLS{Certificate: pair[0], Key: pair[1]}
	ca, at, problem := e.authorities(owner, common)
	required := t.Get("require_client_certificate")
	switch wanted := isTrue(required); {
	case problem != "":
		return nil, problem
	case ca != "":
		s.ClientCA, s.Optional = ca, !wanted
		at.Carry(to + "tls.client_ca")
		required.Carry(to + "tls.optional")
	case wanted:
		return nil, "clients must have a certificate, and it is not given by which authorities it is verified"
	default:
		required.Carry(to + "tls")
	}
	e.tlsOptions(to, common)
	t.Get("ocsp_staple_policy").LeaveAs(Detail, "no OCSP response is sent", "")
	for _, field := range []string{"disable_stateless_session_resumption", "disable_stateful_session_resumption", "session_timeout", "session_ticket_keys"} {
		t.Get(field).LeaveAs(Detail, "session tickets have keys of their own, which change", "")
	}
	return s, ""
}

// carry says of parts that they were carried to one field.
func carry(to string, parts ...document.Part) {
	for _, c := range parts {
		c.Carry(to)
	}
}

// isTrue reports whether a leaf is true, as itself or in a wrapper.
func isTrue(c document.Part) bool { return c.Text() == "true" || c.Get("value").Text() == "true" }

// pair returns the files of the only certificate and its key.
func (e *envoyImport) pair(owner, to string, common document.Part) (files [2]string, problem string) {
	pairs := common.Get("tls_certificates").List()
	for _, named := range common.Get("tls_certificate_sds_secret_configs").List() {
		secret := e.secrets[named.Get("name").Text()]
		if !secret.Get("tls_certificate").There() {
			return files, "its certificate comes from a secret discovery service; write it to files"
		}
		pairs = append(pairs, secret.Get("tls_certificate"))
		carry(to+"tls.certificate", named, secret.Get("name"), secret.Get("@type"))
	}
	if len(pairs) != 1 {
		return files, "it has several certificates, or none that is given, and must have one"
	}
	chain, problem := e.source(pairs[0].Get("certificate_chain"), "certificate")
	if problem != "" {
		return files, problem
	}
	key, problem := e.source(pairs[0].Get("private_key"), "key")
	switch {
	case problem != "":
		return files, problem
	case pairs[0].Get("password").There():
		return files, "its key is encrypted; write it to a file without a password"
	}
	if problem = unfit(chain, key); problem != "" {
		return files, problem
	}
	chain.at.Carry(to + "tls.certificate")
	key.at.Carry(to + "tls.key")
	return [2]string{e.keep(chain, owner, "certificate"), e.keep(key, owner, "key")}, ""
}

// authorities returns the file of the certificates that verify the other side, none if they are not given.
func (e *envoyImport) authorities(owner string, common document.Part) (file string, at document.Part, problem string) {
	combined := common.Get("combined_validation_context")
	named := func(sds document.Part) document.Part {
		return e.secrets[sds.Get("name").Text()].At("validation_context", "trusted_ca")
	}
	ca := common.At("validation_context", "trusted_ca").
		Or(combined.At("default_validation_context", "trusted_ca")).
		Or(named(common.Get("validation_context_sds_secret_config"))).
		Or(named(combined.Get("validation_context_sds_secret_config")))
	if !ca.There() {
		return "", at, ""
	}
	s, problem := e.source(ca, "trusted CA")
	if problem == "" {
		problem = unfitCertificates(s)
	}
	if problem != "" {
		return "", ca, problem
	}
	return e.keep(s, owner, "ca"), s.at, ""
}

// tlsOptions imports the options of TLS that mean what the proxy does.
func (e *envoyImport) tlsOptions(to string, common document.Part) {
	add := func(c document.Part, same ...string) {
		if slices.Contains(same, c.Text()) {
			c.Carry(to + "tls")
		}
	}
	add(common.At("tls_params", "tls_minimum_protocol_version"), "TLS_AUTO", "TLSv1_2")
	add(common.At("tls_params", "tls_maximum_protocol_version"), "TLS_AUTO", "TLSv1_3")
	for _, p := range common.Get("alpn_protocols").List() {
		add(p, "h2", "http/1.1", "h2,http/1.1")
	}
	for _, sds := range []document.Part{
		common.Get("validation_context_sds_secret_config"), common.At("combined_validation_context", "validation_context_sds_secret_config"),
	} {
		if secret := e.secrets[sds.Get("name").Text()]; secret.At("validation_context", "trusted_ca").There() {
			carry(to+"tls", sds, secret.Get("name"), secret.Get("@type"))
		}
	}
	switch low := common.At("tls_params", "tls_minimum_protocol_version"); low.Text() {
	case "TLSv1_0", "TLSv1_1":
		low.Change("tls", "the least version is TLS 1.2")
	}
}

func (e *envoyImport) clientTLS(x *config.Cluster, socket document.Part) {
	t := socket.Get("typed_config")
	kind := t.Get("@type")
	switch {
	case !socket.There():
		return
	case strings.HasSuffix(kind.Text(), ".RawBuffer"):
		socket.Carry("clusters[].endpoints")
		return
	case !strings.HasSuffix(kind.Text(), ".UpstreamTlsContext"):
		socket.LeaveAs(Security, "connections to endpoints are in the clear or by TLS", "")
		return
	}
	carry("clusters[].tls", socket.Get("name"), kind)
	x.TLS = new(config.ClientTLS)
	common := t.Get("common_tls_context")
	e.serverName(x, t.Get("sni"), common)
	e.clientFiles(x, common)
	e.tlsOptions("clusters[].", common)
	if x.TLS.CA == "" {
		e.Notef("cluster %q accepts certificates that the system's authorities signed: "+
			"no authorities could be imported, without which Envoy accepts any", x.Name)
	}
}

// clientFiles imports the authorities that verify endpoints, and the certificate of the proxy.
func (e *envoyImport) clientFiles(x *config.Cluster, common document.Part) {
	owner := "cluster-" + x.Name
	switch ca, at, problem := e.authorities(owner, common); {
	case problem != "":
		at.LeaveAs(Security, problem, "")
	case ca != "":
		assign(e.builder, x, at, "tls.ca", "", ca)
	}
	own := []document.Part{common.Get("tls_certificates"), common.Get("tls_certificate_sds_secret_configs")}
	if !own[0].There() && !own[1].There() {
		return
	}
	before := e.Mark()
	pair, problem := e.pair(owner, "clusters[].", common)
	if problem != "" {
		e.Back(before)
		own[0].LeaveAs(Security, problem, "")
		own[1].LeaveAs(Security, problem, "")
		return
	}
	x.TLS.Certificate, x.TLS.Key = pair[0], pair[1]
}

// serverName imports the name that the certificate of endpoints must have. The proxy
// verifies the name that it asks for.
func (e *envoyImport) serverName(x *config.Cluster, sni, common document.Part) {
	if sni.Text() != "" {
		put(e.builder, x, sni, "tls.server_name", "")
	}
	context := common.Get("validation_context")
	names := append(context.Get("match_typed_subject_alt_names").List(), context.Get("match_subject_alt_names").List()...)
	if len(names) != 1 {
		return // they are left out
	}
	name, kind := names[0], names[0].Get("san_type")
	exact := name.At("matcher", "exact").Or(name.Get("exact"))
	isName := exact.Text() != "" && !strings.ContainsAny(exact.Text(), ":/@") // and no URI or address
	if !isName || kind.There() && kind.Text() != "DNS" || x.TLS.ServerName != "" && x.TLS.ServerName != exact.Text() {
		return
	}
	put(e.builder, x, exact, "tls.server_name", "")
	kind.Carry("clusters[].tls.server_name")
}
