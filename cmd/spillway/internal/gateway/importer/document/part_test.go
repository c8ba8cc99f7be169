package document

import "testing"

// TestSecretsAreNotShown checks paths from configurations of Envoy.
func TestSecretsAreNotShown(t *testing.T) {
	const vhost = "static_resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0]."
	for path, hidden := range map[string]bool{
		vhost + "request_headers_to_add[0].header.value":                                             true,
		vhost + "request_headers_to_add[0].header.raw_value":                                         true,
		vhost + "response_headers_to_add[3].header.value":                                            true,
		vhost + "request_headers_to_add[0].header.key":                                               false,
		vhost + "request_headers_to_add[0].append_action":                                            false,
		vhost + "routes[0].match.headers[1].string_match.exact":                                      true,
		vhost + "routes[0].match.headers[1].exact_match":                                             true,
		vhost + "routes[0].match.headers[1].name":                                                    false,
		"virtualHosts[0].requestHeadersToAdd[0].header.value":                                        true,
		"virtualHosts[0].requestHeadersToAdd[0].header.rawValue":                                     true,
		"virtualHosts[0].requestHeadersToAdd[0].appendAction":                                        false,
		"virtualHosts[0].routes[0].match.headers[1].stringMatch.safeRegex.regex":                     true,
		"tlsCertificate.privateKey.environmentVariable":                                              true,
		"static_resources.secrets[0].generic_secret.secret.inline_string":                            true,
		"static_resources.secrets[0].session_ticket_keys.keys[0].filename":                           true,
		"static_resources.secrets[0].name":                                                           true,
		"static_resources.secrets[0].tls_certificate.private_key.environment_variable":               true,
		"static_resources.clusters[0].transport_socket.typed_config.session_ticket_keys.keys[0].a.b": true,
		"http_filters[0].typed_config.credentials.hmac_secret.sds_config.path":                       true,
		"http_filters[0].typed_config.providers.a.local_jwks.inline_string":                          true,
		"http_filters[0].typed_config.inline_code":                                                   true,
		"static_resources.clusters[0].connect_timeout":                                               false,
		"token_bucket.max_tokens":                                                                    false,
		"http_filters[0].typed_config.tokenBucket.tokensPerFill":                                     false,
		"http_filters[0].typed_config.max_tokens":                                                    true,
		"token_bucket.fill_interval":                                                                 false,
		"retryThrottling.tokenRatio":                                                                 false,
		"aws_session_token":                                                                          true,
	} {
		if got := (Part{Path: path, Value: "x"}).shown(); (got == "(not shown)") != hidden {
			t.Errorf("%s is shown as %s", path, got)
		}
	}
}
