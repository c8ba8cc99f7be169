package importer

import (
	"fmt"
	"strings"
	"testing"
)

// edge returns a configuration of Envoy with one listener of TLS, and parts added to it.
func edge(chain, manager, host, cluster string) string {
	const tls = `"transport_socket": {"name": "tls", "typed_config": {"@type": "x.DownstreamTlsContext", "common_tls_context": {
		"tls_certificates": [{"certificate_chain": {"filename": "/c.pem"}, "private_key": {"filename": "/k.pem"}}]}}}`
	if chain == "" {
		chain = tls
	}
	return fmt.Sprintf(`{"listeners": [{"name": "l", "address": {"socket_address": {"address": "127.0.0.1", "port_value": 443}},
		"filter_chains": [{%s, "filters": [{"typed_config": {"@type": "x.HttpConnectionManager", %s "route_config": {
			"virtual_hosts": [{"domains": ["*"], %s "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "a"}}]}]}}}]}]}],
		"clusters": [{"name": "a", %s "load_assignment": {"endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 80}}}}]}]}}]}`,
		chain, manager, host, cluster)
}

// TestNothingOfSecurityIsLostInSilence: an import that drops what protects a service fails,
// and a listener of TLS is never one without.
func TestNothingOfSecurityIsLostInSilence(t *testing.T) {
	tls := func(kind, rest string) string {
		return fmt.Sprintf(`"transport_socket": {"name": "tls", "typed_config": {"@type": "x.%s", %s}}`, kind, rest)
	}
	const pair = `"tls_certificates": [{"certificate_chain": {"filename": "/c.pem"}, "private_key": {"filename": "/k.pem"}}]`
	for name, text := range map[string]string{
		"certificate inline":      edge(tls("DownstreamTlsContext", `"common_tls_context": {"tls_certificates": [{"certificate_chain": {"inline_string": "x"}, "private_key": {"inline_string": "x"}}]}`), "", "", ""),
		"certificate of SDS":      edge(tls("DownstreamTlsContext", `"common_tls_context": {"tls_certificate_sds_secret_configs": [{"name": "s", "sds_config": {"ads": {}}}]}`), "", "", ""),
		"two certificates":        edge(tls("DownstreamTlsContext", `"common_tls_context": {"tls_certificates": [{"certificate_chain": {"filename": "/c"}, "private_key": {"filename": "/k"}}, {"certificate_chain": {"filename": "/d"}, "private_key": {"filename": "/e"}}]}`), "", "", ""),
		"encrypted key":           edge(tls("DownstreamTlsContext", `"common_tls_context": {"tls_certificates": [{"certificate_chain": {"filename": "/c"}, "private_key": {"filename": "/k"}, "password": {"filename": "/p"}}]}`), "", "", ""),
		"no context":              edge(`"transport_socket": {"name": "envoy.transport_sockets.tls"}`, "", "", ""),
		"camel case":              edge(`"transportSocket": {"name": "tls", "typedConfig": {"@type": "x.DownstreamTlsContext", "commonTlsContext": {}}}`, "", "", ""),
		"other socket":            edge(tls("QuicDownstreamTransport", `"downstream_tls_context": {}`), "", "", ""),
		"client without CA":       edge(tls("DownstreamTlsContext", `"require_client_certificate": true, "common_tls_context": {`+pair+`}`), "", "", ""),
		"client CA inline":        edge(tls("DownstreamTlsContext", `"require_client_certificate": {"value": true}, "common_tls_context": {`+pair+`, "validation_context": {"trusted_ca": {"inline_string": "x"}}}`), "", "", ""),
		"names of clients":        edge(tls("DownstreamTlsContext", `"require_client_certificate": true, "common_tls_context": {`+pair+`, "validation_context": {"trusted_ca": {"filename": "/a"}, "match_typed_subject_alt_names": [{"san_type": "URI", "matcher": {"exact": "spiffe://a"}}]}}`), "", "", ""),
		"revoked":                 edge(tls("DownstreamTlsContext", `"common_tls_context": {`+pair+`, "validation_context": {"trusted_ca": {"filename": "/a"}, "crl": {"filename": "/r"}}}`), "", "", ""),
		"TLS 1.3 only":            edge(tls("DownstreamTlsContext", `"common_tls_context": {`+pair+`, "tls_params": {"tls_minimum_protocol_version": "TLSv1_3"}}`), "", "", ""),
		"networks by chain":       edge(`"filter_chain_match": {"direct_source_prefix_ranges": [{"address_prefix": "10.0.0.0", "prefix_len": 8}]}`, "", "", ""),
		"JWT":                     edge("", `"http_filters": [{"name": "jwt", "typed_config": {"@type": "x.JwtAuthentication", "rules": []}}],`, "", ""),
		"unknown filter":          edge("", `"http_filters": [{"name": "envoy.filters.http.router2", "typed_config": {"@type": "x.Whatever"}}],`, "", ""),
		"filter without type":     edge("", `"http_filters": [{"name": "ours"}],`, "", ""),
		"escaped slashes":         edge("", `"path_with_escaped_slashes_action": "REJECT_REQUEST",`, "", ""),
		"client certificate":      edge("", `"forward_client_cert_details": "SANITIZE_SET",`, "", ""),
		"removed header":          edge("", "", `"request_headers_to_remove": ["x-role"],`, ""),
		"RBAC of a host":          edge("", "", `"typed_per_filter_config": {"envoy.filters.http.rbac": {"@type": "x.RBACPerRoute"}},`, ""),
		"endpoint by ALTS":        edge("", "", "", tls("Alts", `"a": 1`)+","),
		"endpoint by other match": edge("", "", "", `"transport_socket_matches": [{"name": "m"}],`),
		"certificate of proxy":    edge("", "", "", tls("UpstreamTlsContext", `"common_tls_context": {"tls_certificates": [{"certificate_chain": {"inline_string": "x"}}]}`)+","),
		"name of endpoint":        edge("", "", "", tls("UpstreamTlsContext", `"sni": "a", "common_tls_context": {"validation_context": {"match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": "b"}}]}}`)+","),
		"plaintext, TLS required": edge(`"name": "plain"`, "", `"require_tls": "EXTERNAL_ONLY",`, ""),
		"denied path": `{"virtual_hosts": [{"domains": ["*"], "routes": [{"match": {"prefix": "/admin"}, "direct_response": {"status": 403}},
			{"match": {"prefix": "/"}, "route": {"cluster": "a"}}]}]}`,
		"denied in a narrower host": `{"virtual_hosts": [{"domains": ["a.test"], "routes": [{"match": {"prefix": "/"}, "directResponse": {"status": 403}}]},
			{"domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "a"}}]}]}`,
		"nothing but filters": `{"listeners": [{"filter_chains": [{}]}]}`,
		"routes without any":  `{"virtual_hosts": [{"domains": ["*"], "routes": [{"match": {"prefix": "/"}, "redirect": {"path_redirect": "/a"}}]}]}`,
		"empty":               `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Envoy([]Document{{Name: "x", Text: []byte(text)}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Err() == nil {
				t.Errorf("%v, want an error: %+v", r.Err(), r.Notes)
			}
			if r.Config == nil {
				return
			}
			for _, l := range r.Config.Listeners {
				if l.TLS == nil && strings.Contains(text, "ownstream") {
					t.Errorf("a listener of TLS is one without: %+v", l)
				}
			}
		})
	}
	r, err := Envoy([]Document{{Name: "x", Text: []byte(edge("", "", "", ""))}}, Options{})
	if err != nil || r.Err() != nil || r.Config.Listeners[0].TLS == nil {
		t.Errorf("with nothing added: %v, %v", err, r)
	}
}

// Routes of one listener are never served by another one.
func TestRoutesOfRDS(t *testing.T) {
	listener := func(name, port string) string {
		return fmt.Sprintf(`{"name": %q, "address": {"socket_address": {"address": "127.0.0.1", "port_value": %s}}, "filter_chains": [{"filters": [
			{"typed_config": {"@type": "x.HttpConnectionManager", "rds": {"route_config_name": %q}}}]}]}`, name, port, name)
	}
	routes := func(name string) string {
		return fmt.Sprintf(`{"name": %q, "virtual_hosts": [{"domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": %q}}]}]}`, name, name)
	}
	text := "[" + strings.Join([]string{listener("inner", "1"), listener("outer", "2"), routes("outer"), routes("inner"), routes("nobody")}, ",") + "]"
	r, err := Envoy([]Document{{Name: "x", Text: []byte(text)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Config.Routes) != 2 {
		t.Errorf("%+v", r.Config.Routes)
	}
	for _, route := range r.Config.Routes {
		if len(route.Listeners) != 1 || route.Listeners[0] != route.Cluster {
			t.Errorf("cluster %s is served by %q", route.Cluster, route.Listeners)
		}
	}
}

// gRPC reads names of fields without regard to case, and takes two for one.
func TestCaseOfGRPC(t *testing.T) {
	const text = `{"METHODCONFIG": [{"Name": [{"SERVICE": "a.B"}], "RETRYPolicy": {"MaxAttempts": 3, "initialbackoff": "1.s"}}]}`
	r, err := GRPC(Document{Name: "x", Text: []byte(text)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Config.Clusters[0].Retry; x.MaxAttempts != 3 || x.Base != 1e9 || x.Mode != "enforce" || r.Err() != nil {
		t.Errorf("%+v, %v", x, r.Err())
	}
	for _, text := range []string{`{"methodConfig": [], "MethodConfig": []}`, `{"a": [{"maxAttempts": 1, "MaxAttempts": 2}]}`} {
		if _, err := GRPC(Document{Name: "x", Text: []byte(text)}, Options{}); err == nil || !strings.Contains(err.Error(), "one field") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{`{}`, `{"method_config": [{"name": [{}]}]}`} { // gRPC has no names in snake case
		if r, err := GRPC(Document{Name: "x", Text: []byte(text)}, Options{}); err != nil || r.Err() == nil {
			t.Errorf("%s: %v, %v", text, err, r)
		}
	}
}

func TestMongoDBSecurity(t *testing.T) {
	for text, lost := range map[string]bool{
		"mongodb://a:b@h1/?authMechanism=MONGODB-X509":                                    true,
		"mongodb://h1/?tls=true&tlsCertificateKeyFile=/k&tlsCertificateKeyFilePassword=p": true,
		"mongodb://h1/?tls=true&tlsCRLFile=/r":                                            true,
		"mongodb+srv://a:b@cluster.example.com/?retryWrites=true":                         false,
		"mongodb://h1,h2/?replicaSet=rs":                                                  false,
		"net: {port: 1, tls: {mode: requireTLS}}":                                         true,
		"net: {tls: {mode: preferTLS, certificateKeyFile: /k, FIPSMode: true}}":           true,
		"net: {port: 1, bindIpAll: true}":                                                 true,
		"net: {port: 27017}":                                                              false,
		"{}":                                                                              true,
	} {
		r, err := MongoDB([]Document{{Name: "x", Text: []byte(text)}}, Options{})
		if err != nil || (r.Err() != nil) != lost {
			t.Errorf("%s: %v, %+v", text, err, r)
		}
		if lost && err == nil && r.Config != nil && strings.Contains(text, "requireTLS") && r.Config.Mongo[0].TLS == nil {
			t.Errorf("%s became a listener without TLS", text)
		}
	}
	for _, text := range []string{"mongodb://", "mongodb://a:b:c@h", "mongodb://h/?a", "mongodb://h/?a=1&A=2", "mongodb://h%zz", "mongodb://a@c4nary@h"} {
		if _, err := MongoDB([]Document{{Name: "x", Text: []byte(text)}}, Options{}); err == nil || strings.Contains(err.Error(), "c4nary") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzMongoDB(f *testing.F) {
	for _, doc := range []string{"mongodb://a:b@[::1]:1,h/d?tls=true&replicaSet=r", "net: {port: 1}", `{"ingressRequestAdmissionRatePerSec": 1}`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := MongoDB([]Document{{Name: "x", Text: text}}, Options{})
		accounted(t, text, r, err)
	})
}

// TestListenerAtDefaultUpstream imports a listener and an endpoint at the addresses that others get by default.
func TestListenerAtDefaultUpstream(t *testing.T) {
	r := envoyOf(t, "clusters: [{name: a, type: STATIC, load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: "+
		"{address: 127.0.0.1, port_value: 8000}}}}]}]}}]\nlisteners: [{name: l, address: {socket_address: {address: 127.0.0.1, port_value: 8080}}, "+
		"filter_chains: [{filters: [{typed_config: {'@type': x.HttpConnectionManager}}]}]}]")
	if l, e := r.Config.Listeners[0].Address, r.Config.Clusters[0].Endpoints[0]; l != "127.0.0.1:8080" || e != "127.0.0.1:8000" {
		t.Errorf("%s goes to %s: %v", l, e, r.Notes)
	}
}
