package wire

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// A Handshake is the content of a client's hello.
type Handshake struct {
	Application  string
	Driver       string
	Backpressure bool // the driver backs off by itself
	Balanced     bool // the driver believes to be behind a load balancer
}

// maxName bounds names that clients choose, as MongoDB does.
const maxName = 128

// NewHandshake reads the document of a hello.
func NewHandshake(doc []byte) (h Handshake) {
	for key, v := range mongowire.Elements(doc) {
		switch string(key) {
		case "client":
			h.Application = name(mongowire.Lookup(mongowire.Lookup(v.Document(), "application").Document(), "name").Text())
			h.Driver = name(mongowire.Lookup(mongowire.Lookup(v.Document(), "driver").Document(), "name").Text())
		case "backpressure":
			n, number := v.Number() // a version; 0 is none
			h.Backpressure = v.True() || v.Kind != mongowire.KindBoolean && !(number && n == 0)
		case "loadBalanced":
			h.Balanced = v.True()
		}
	}
	return h
}

func name(text []byte) string { return string(text[:min(len(text), maxName)]) }

// ofSet are the fields of a hello that describe a replica set. Sharded clusters and
// standalones do not send them.
var ofSet = []string{
	"setName", "setVersion", "hosts", "passives", "arbiters", "primary", "me", "electionId", "isreplicaset",
	"secondary", "arbiterOnly", "passive", "hidden", "tags", "secondaryDelaySecs", "slaveDelay",
}

// A Mask is a set of changes to the answer to a hello. In any case it removes snappy from the
// compressors, so that drivers choose another one or none: a message of snappy can only be
// expanded as a whole, and the proxy reads the beginnings of messages of up to 48 MB.
type Mask struct {
	Hide    bool     // a replica set
	Service [12]byte // for a client that wants a serviceId; zero if none does
}

// Apply returns the document for the client.
func (m Mask) Apply(doc []byte) []byte {
	var b mongowire.Builder
	member, service := false, m.Service == [12]byte{}
	for key, v := range mongowire.Elements(doc) {
		field := string(key)
		if m.Hide && slices.Contains(ofSet, field) {
			member = member || field == "setName" || field == "isreplicaset"
			continue
		}
		service = service || field == "serviceId"
		if field == "compression" {
			b.Array(field, compressors(v)...)
			continue
		}
		b.Value(field, v)
	}
	if member && mongowire.Lookup(doc, "msg").Kind == 0 {
		b.Text("msg", "isdbgrid")
	}
	if !service && mongowire.Lookup(doc, "ok").True() {
		b.ObjectID("serviceId", m.Service)
	}
	return b.Document()
}

// compressors returns the names of a list without snappy.
func compressors(list mongowire.Value) (names []string) {
	for _, v := range mongowire.Elements(list.Array()) {
		if name := string(v.Text()); name != "snappy" {
			names = append(names, name)
		}
	}
	return names
}

// payloadOf returns what a mechanism says. Servers take it as binary data, as drivers send it, and in Base64.
func payloadOf(v mongowire.Value) []byte {
	text := v.Text()
	if text == nil {
		return v.Binary()
	}
	said, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return nil // which no server takes
	}
	return said
}

// Claimant returns the user that the first message of an authentication names, where
// its mechanism says so: SCRAM, PLAIN, and X.509 where it is given.
func Claimant(doc []byte) string {
	payload := payloadOf(mongowire.Lookup(doc, "payload"))
	switch mechanism := mongowire.Lookup(doc, "mechanism").Text(); {
	case bytes.HasPrefix(mechanism, []byte("SCRAM-")):
		_, rest, _ := bytes.Cut(payload, []byte(",n=")) // after the GS2 header, n,,
		user, _, _ := bytes.Cut(rest, []byte{','})
		return strings.NewReplacer("=2C", ",", "=3D", "=").Replace(name(user))
	case string(mechanism) == "PLAIN":
		_, rest, _ := bytes.Cut(payload, []byte{0})
		user, _, _ := bytes.Cut(rest, []byte{0})
		return name(user)
	case string(mechanism) == "MONGODB-X509", mechanism == nil: // of the others no server reads the field
		return name(mongowire.Lookup(doc, "user").Text())
	default:
		return ""
	}
}
