package spillxds

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/xds/bootstrap"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/seed90641741/spillway/internal/invalid"
)

// The environment variables of gRPC: the name of a bootstrap file, which comes
// first, and the text of one.
const (
	bootstrapFile = "GRPC_XDS_BOOTSTRAP"
	bootstrapText = "GRPC_XDS_BOOTSTRAP_CONFIG"
)

// What this client can do, as it says in its node.
var clientFeatures = []string{"envoy.lb.does_not_support_overprovisioning", "xds.config.resource-in-sotw"}

// A Bootstrap says where the control plane is, how to prove who one is, and who
// that is. Make one with [ParseBootstrap] or [BootstrapFromEnvironment]. It may
// hold open files, which the [Client] that it is given to closes; a Bootstrap
// serves one Client.
type Bootstrap struct {
	target  string
	options []grpc.DialOption
	node    *corev3.Node
	release []func()

	ignoreDeletion bool // limits stay, whatever the Config says (gRFC A53)
}

// bootstrapJSON is the part of gRPC's format that is used.
type bootstrapJSON struct {
	Servers []serverJSON `json:"xds_servers"`
	Node    nodeJSON     `json:"node"`
}

type serverJSON struct {
	URI          string            `json:"server_uri"`
	ChannelCreds []credentialsJSON `json:"channel_creds"`
	CallCreds    []credentialsJSON `json:"call_creds"`
	Features     []string          `json:"server_features"`
}

type credentialsJSON struct {
	Type   string          `json:"type"`
	Config json.RawMessage `json:"config"`
}

type nodeJSON struct {
	ID       string           `json:"id"`
	Cluster  string           `json:"cluster"`
	Locality Locality         `json:"locality"`
	Metadata *structpb.Struct `json:"metadata"`
}

// BootstrapFromEnvironment reads the bootstrap that gRPC would: the file named by
// GRPC_XDS_BOOTSTRAP, or else the text of GRPC_XDS_BOOTSTRAP_CONFIG.
func BootstrapFromEnvironment() (*Bootstrap, error) {
	if name := os.Getenv(bootstrapFile); name != "" {
		text, err := os.ReadFile(name) //nolint:gosec // the operator names it
		if err != nil {
			return nil, fmt.Errorf("spillxds: %s: %w", bootstrapFile, err)
		}
		return ParseBootstrap(text)
	}
	if text := os.Getenv(bootstrapText); text != "" {
		return ParseBootstrap([]byte(text))
	}
	return nil, fmt.Errorf("spillxds: no bootstrap: set %s or %s, or Config.Bootstrap", bootstrapFile, bootstrapText)
}

// ParseBootstrap reads a bootstrap in gRPC's JSON format. Its errors name fields
// and types of credentials, never a value: bootstraps hold secrets.
func ParseBootstrap(text []byte) (*Bootstrap, error) {
	var parsed bootstrapJSON
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, fmt.Errorf("spillxds: bootstrap: %w", withoutValues(err))
	}
	if len(parsed.Servers) == 0 || parsed.Servers[0].URI == "" {
		return nil, invalid.Field("spillxds", "xds_servers[0].server_uri", "", "the address of the control plane")
	}
	if n := len(parsed.Servers); n > 1 {
		return nil, fmt.Errorf("spillxds: bootstrap: xds_servers has %d entries, must have 1: fallback to a second control plane (gRFC A71) is not supported; "+
			"take the others out, or set Config.Bootstrap to what ParseBootstrap returns for a text with one", n)
	}
	b := &Bootstrap{
		target: parsed.Servers[0].URI, node: parsed.Node.proto(),
		ignoreDeletion: slices.Contains(parsed.Servers[0].Features, "ignore_resource_deletion"),
	}
	if err := b.credentials(parsed.Servers[0]); err != nil {
		b.close()
		return nil, fmt.Errorf("spillxds: bootstrap: xds_servers[0]: %w", err)
	}
	return b, nil
}

// withoutValues returns what err of package json says of the place, and nothing
// of what stands there.
func withoutValues(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not JSON at byte %d", syntax.Offset)
	}
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("field %q is not of type %v", mistyped.Field, mistyped.Type)
	}
	return errors.New("node.metadata is no JSON object")
}

// credentials takes the first channel credentials of a type that is known, and
// all such call credentials, as gRPC does.
func (b *Bootstrap) credentials(s serverJSON) error {
	if err := b.channel(s.ChannelCreds); err != nil {
		return err
	}
	for i, c := range s.CallCreds {
		known := bootstrap.GetCallCredentials(c.Type)
		if known == nil {
			continue
		}
		creds, release, err := known.Build(c.Config)
		if err != nil {
			return fmt.Errorf("call_creds[%d]: the configuration of %q is not valid", i, c.Type)
		}
		b.add(grpc.WithPerRPCCredentials(creds), release)
	}
	return nil
}

func (b *Bootstrap) channel(all []credentialsJSON) error {
	for i, c := range all {
		known := bootstrap.GetChannelCredentials(c.Type)
		if known == nil {
			continue
		}
		bundle, release, err := known.Build(c.Config)
		if err != nil {
			return fmt.Errorf("channel_creds[%d]: the configuration of %q is not valid", i, c.Type)
		}
		b.add(grpc.WithCredentialsBundle(bundle), release)
		return nil
	}
	return errors.New("channel_creds has no type that is known, such as tls or insecure")
}

func (b *Bootstrap) add(o grpc.DialOption, release func()) {
	b.options = append(b.options, o)
	if release != nil {
		b.release = append(b.release, release)
	}
}

func (b *Bootstrap) close() {
	for _, release := range b.release {
		release()
	}
	b.release = nil
}

func (n nodeJSON) proto() *corev3.Node {
	node := &corev3.Node{
		Id: n.ID, Cluster: n.Cluster, Metadata: n.Metadata,
		UserAgentName:        "spillway",
		UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: "grpc-go " + grpc.Version},
		ClientFeatures:       clientFeatures,
	}
	if n.Locality != (Locality{}) {
		node.Locality = n.Locality.proto()
	}
	return node
}
