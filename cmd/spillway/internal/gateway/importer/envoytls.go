package importer

import (
	"slices"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// serverTLS returns the TLS of a filter chain, nil if connections are in the clear. A
// problem means that it is encrypted in Envoy in a way that cannot be imported.
func (e *envoyImport) serverTLS(chain cursor) (_ *config.ServerTLS, carried []mapping, problem string) {
	socket := chain.get("transport_socket")
	t := socket.get("typed_config")
	kind := t.get("@type")
	switch {
	case chain.get("tls_context").there():
		t = chain.get("tls_context")
	case !socket.there(), strings.HasSuffix(kind.text(), ".RawBuffer"):
		return nil, []mapping{{socket, "address"}}, ""
	case !strings.HasSuffix(kind.text(), ".DownstreamTlsContext"):
		return nil, nil, "its transport socket is not TLS as this proxy has it"
	}
	carried = []mapping{{socket.get("name"), "tls"}, {kind, "tls"}}
	common := t.get("common_tls_context")
	pair, parts, problem := e.pair(common)
	if problem != "" {
		return nil, nil, problem
	}
	carried = append(carried, parts...)
	s := &config.ServerTLS{Certificate: pair[0], Key: pair[1]}
	ca := e.authorities(common)
	required := t.get("require_client_certificate")
	switch wanted := isTrue(required); {
	case ca.text() != "":
		s.ClientCA, s.Optional = ca.text(), !wanted
		carried = append(carried, mapping{ca, "tls.client_ca"}, mapping{required, "tls.optional"})
	case wanted:
		return nil, nil, "clients must have a certificate, and no file says by which authorities it is verified"
	default:
		carried = append(carried, mapping{required, "tls"})
	}
	carried = append(carried, e.tlsOptions(common)...)
	t.get("ocsp_staple_policy").leaveAs(Detail, "no OCSP response is sent", "")
	for _, field := range []string{"disable_stateless_session_resumption", "disable_stateful_session_resumption", "session_timeout", "session_ticket_keys"} {
		t.get(field).leaveAs(Detail, "session tickets have keys of their own, which change", "")
	}
	return s, carried, ""
}

// isTrue reports whether a leaf is true, as itself or in a wrapper.
func isTrue(c cursor) bool { return c.text() == "true" || c.get("value").text() == "true" }

// pair returns the files of the only certificate and its key.
func (e *envoyImport) pair(common cursor) (files [2]string, carried []mapping, problem string) {
	pairs := common.get("tls_certificates").list()
	for _, named := range common.get("tls_certificate_sds_secret_configs").list() {
		secret := e.secrets[named.get("name").text()]
		if !secret.get("tls_certificate").there() {
			return files, nil, "its certificate comes from a secret discovery service; write it to files"
		}
		pairs = append(pairs, secret.get("tls_certificate"))
		for _, at := range []cursor{named, secret.get("name"), secret.get("@type")} {
			carried = append(carried, mapping{at, "tls.certificate"})
		}
	}
	if len(pairs) != 1 {
		return files, nil, "it has several certificates, or none that is given as files, and must have one"
	}
	chain, key := pairs[0].at("certificate_chain", "filename"), pairs[0].at("private_key", "filename")
	switch {
	case chain.text() == "" || key.text() == "":
		return files, nil, "its certificate or key is not in a file; write them to files"
	case pairs[0].get("password").there():
		return files, nil, "its key is encrypted; write it to a file without a password"
	}
	return [2]string{chain.text(), key.text()}, append(carried, mapping{chain, "tls.certificate"}, mapping{key, "tls.key"}), ""
}

// authorities returns the file of the certificates that verify the other side.
func (e *envoyImport) authorities(common cursor) cursor {
	context := common.get("validation_context")
	combined := common.get("combined_validation_context")
	for _, other := range []cursor{
		combined.get("default_validation_context"),
		e.secrets[common.at("validation_context_sds_secret_config", "name").text()].get("validation_context"),
		e.secrets[combined.at("validation_context_sds_secret_config", "name").text()].get("validation_context"),
	} {
		if !context.at("trusted_ca", "filename").there() {
			context = other
		}
	}
	return context.at("trusted_ca", "filename")
}

// tlsOptions returns the options of TLS that mean what the proxy does.
func (e *envoyImport) tlsOptions(common cursor) (carried []mapping) {
	add := func(c cursor, same ...string) {
		if slices.Contains(same, c.text()) {
			carried = append(carried, mapping{c, "tls"})
		}
	}
	add(common.at("tls_params", "tls_minimum_protocol_version"), "TLS_AUTO", "TLSv1_2")
	add(common.at("tls_params", "tls_maximum_protocol_version"), "TLS_AUTO", "TLSv1_3")
	for _, p := range common.get("alpn_protocols").list() {
		add(p, "h2", "http/1.1", "h2,http/1.1")
	}
	for _, sds := range []cursor{
		common.get("validation_context_sds_secret_config"), common.at("combined_validation_context", "validation_context_sds_secret_config"),
	} {
		if secret := e.secrets[sds.get("name").text()]; secret.at("validation_context", "trusted_ca", "filename").there() {
			carried = append(carried, mapping{sds, "tls"}, mapping{secret.get("name"), "tls"}, mapping{secret.get("@type"), "tls"})
		}
	}
	switch low := common.at("tls_params", "tls_minimum_protocol_version"); low.text() {
	case "TLSv1_0", "TLSv1_1":
		low.changed("tls", "the least version is TLS 1.2")
	}
	return carried
}

// clientTLS imports how endpoints are connected to, and reports whether it could be.
func (e *envoyImport) clientTLS(x *config.Cluster, socket cursor) {
	t := socket.get("typed_config")
	kind := t.get("@type")
	switch {
	case !socket.there():
		return
	case strings.HasSuffix(kind.text(), ".RawBuffer"):
		socket.carry("clusters[].endpoints")
		return
	case !strings.HasSuffix(kind.text(), ".UpstreamTlsContext"):
		socket.leaveAs(Security, "connections to endpoints are in the clear or by TLS", "")
		return
	}
	socket.get("name").carry("clusters[].tls")
	kind.carry("clusters[].tls")
	x.TLS = new(config.ClientTLS)
	common := t.get("common_tls_context")
	e.serverName(x, t.get("sni"), common)
	if ca := e.authorities(common); ca.text() != "" {
		e.setCluster(x, ca, "tls.ca", "", func(x *config.Cluster) { x.TLS.CA = ca.text() })
	}
	if pair, parts, problem := e.pair(common); problem == "" {
		x.TLS.Certificate, x.TLS.Key = pair[0], pair[1]
		for _, part := range parts {
			part.at.carry("clusters[]." + part.field)
		}
	}
	for _, part := range e.tlsOptions(common) {
		part.at.carry("clusters[]." + part.field)
	}
	if x.TLS.CA == "" {
		e.notef("cluster %q accepts certificates that the system's authorities signed: "+
			"no file of authorities could be imported, without which Envoy accepts any", x.Name)
	}
}

// serverName imports the name that the certificate of endpoints must have. The proxy
// verifies the name that it asks for.
func (e *envoyImport) serverName(x *config.Cluster, sni, common cursor) {
	if sni.text() != "" {
		e.setCluster(x, sni, "tls.server_name", "", func(x *config.Cluster) { x.TLS.ServerName = sni.text() })
	}
	context := common.get("validation_context")
	names := append(context.get("match_typed_subject_alt_names").list(), context.get("match_subject_alt_names").list()...)
	if len(names) != 1 {
		return // they are left out
	}
	name, kind := names[0], names[0].get("san_type")
	exact := name.at("matcher", "exact")
	if !exact.there() {
		exact = name.get("exact")
	}
	if exact.text() == "" || kind.there() && kind.text() != "DNS" || x.TLS.ServerName != "" && x.TLS.ServerName != exact.text() {
		return
	}
	e.setCluster(x, exact, "tls.server_name", "", func(x *config.Cluster) { x.TLS.ServerName = exact.text() })
	kind.carry("clusters[].tls.server_name")
}
