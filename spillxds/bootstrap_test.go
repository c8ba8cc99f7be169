package spillxds_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/seed90641741/spillway/spillxds"
)

const secret = "hunter2-do-not-tell"

func TestBootstrapErrorsTellNoValues(t *testing.T) {
	for want, text := range map[string]string{
		"not JSON at byte":                             `{"xds_servers": [{"server_uri": "` + secret,
		"not JSON at byte 1":                           secret,
		`"xds_servers.server_uri"`:                     `{"xds_servers":[{"server_uri":["` + secret + `"]}]}`,
		`"node.id"`:                                    `{"node":{"id":{"` + secret + `":1}}}`,
		"node.metadata":                                `{"node":{"metadata":"` + secret + `"}}`,
		`server_uri is ""`:                             `{"xds_servers":[{"channel_creds":[{"type":"insecure","config":"` + secret + `"}]}]}`,
		"no type that is known":                        `{"xds_servers":[{"server_uri":"x","channel_creds":[{"type":"` + secret + `"}]}]}`,
		"xds_servers has 2 entries":                    `{"xds_servers":[{"server_uri":"x"},{"server_uri":"` + secret + `"}]}`,
		"channel_creds has no":                         `{"xds_servers":[{"server_uri":"x"}]}`,
		`channel_creds[1]: the configuration of "tls"`: `{"xds_servers":[{"server_uri":"x","channel_creds":[{"type":"unknown"},{"type":"tls","config":{"certificate_file":"` + secret + `","refresh_interval":"` + secret + `"}}]}]}`,
		`call_creds[0]: the configuration of "jwt_token_file" is`: `{"xds_servers":[{"server_uri":"x","channel_creds":[{"type":"insecure"}],"call_creds":[{"type":"jwt_token_file","config":"` + secret + `"}]}]}`,
	} {
		_, err := spillxds.ParseBootstrap([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%v\nwant an error with %s, and no value", err, want)
		}
	}
}

func TestBootstrapFromEnvironment(t *testing.T) {
	const good = `{"xds_servers":[{"server_uri":"127.0.0.1:1","channel_creds":[{"type":"insecure"}]}],"certificate_providers":{},"unknown":1}`
	t.Setenv("GRPC_XDS_BOOTSTRAP", "")
	t.Setenv("GRPC_XDS_BOOTSTRAP_CONFIG", "")
	if _, err := spillxds.New(spillxds.Config{}); err == nil || !strings.Contains(err.Error(), "GRPC_XDS_BOOTSTRAP") {
		t.Errorf("without any: %v", err)
	}
	t.Setenv("GRPC_XDS_BOOTSTRAP_CONFIG", good)
	client, err := spillxds.New(spillxds.Config{})
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	file := filepath.Join(t.TempDir(), "bootstrap.json")
	t.Setenv("GRPC_XDS_BOOTSTRAP", file) // which comes first
	if _, err := spillxds.BootstrapFromEnvironment(); !os.IsNotExist(err) && !strings.Contains(fmt.Sprint(err), "GRPC_XDS_BOOTSTRAP") {
		t.Errorf("without the file: %v", err)
	}
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := spillxds.BootstrapFromEnvironment(); err != nil {
		t.Error(err)
	}
}

func TestBadConfig(t *testing.T) {
	for want, c := range map[string]spillxds.Config{
		"DoesNotExist is 2h0m0s":                            {DoesNotExist: 2 * time.Hour},
		"BackoffBase is -1s":                                {BackoffBase: -time.Second},
		"BackoffMax is 500ms, must be at least BackoffBase": {BackoffMax: 500 * time.Millisecond},
		"MinReportInterval is 1ms":                          {MinReportInterval: time.Millisecond},
		"FlushTimeout is 2m0s":                              {FlushTimeout: 2 * time.Minute},
		"MaxClusters is -1":                                 {MaxClusters: -1},
		"Deleted is 2":                                      {Deleted: 2},
		"Reports is 3":                                      {Reports: 3},
	} {
		if client, err := spillxds.New(c); client != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want an error with %q", err, want)
		}
	}
}

// authority issues certificates for 127.0.0.1 into a directory.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.key = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key))
	a.cert = must(x509.ParseCertificate(der))
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(name, kind string, der []byte) string {
	file := filepath.Join(a.dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return file
}

// issue writes name.pem and name.key.
func (a *authority) issue(name string) tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der := must(x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key))
	cert := a.write(name+".pem", "CERTIFICATE", der)
	return must(tls.LoadX509KeyPair(cert, a.write(name+".key", "EC PRIVATE KEY", must(x509.MarshalECPrivateKey(key)))))
}

// TestMutualTLS takes all certificates from the files that the bootstrap names.
func TestMutualTLS(t *testing.T) {
	a := newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	serverTLS := &tls.Config{Certificates: []tls.Certificate{a.issue("server")}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	a.issue("client")
	p := newPlane(t)
	p.kill()
	p.start("127.0.0.1:0", grpc.Creds(credentials.NewTLS(serverTLS)))
	p.push(cluster("users", 12))
	connect := func(config string) *spillxds.Cluster {
		client := must(spillxds.New(spillxds.Config{
			Bootstrap: must(spillxds.ParseBootstrap(fmt.Appendf(nil,
				`{"xds_servers":[{"server_uri":%q,"channel_creds":[{"type":"tls","config":{%s}}]}],"node":{"id":%q}}`, p.addr, config, nodeID))),
			BackoffBase: 10 * time.Millisecond, BackoffMax: 20 * time.Millisecond,
		}))
		t.Cleanup(func() { client.Close() })
		return must(client.Cluster(key("users")))
	}
	ca := fmt.Sprintf(`"ca_certificate_file":%q`, filepath.Join(a.dir, "ca.pem"))
	own := fmt.Sprintf(`"certificate_file":%q,"private_key_file":%q`, filepath.Join(a.dir, "client.pem"), filepath.Join(a.dir, "client.key"))
	users := connect(ca + "," + own)
	limitOf(t, users, 12)
	anonymous := connect(ca)
	distrustful := connect(own)
	<-time.After(200 * time.Millisecond)
	for who, c := range map[string]*spillxds.Cluster{"without a certificate": anonymous, "that does not know the CA": distrustful} {
		if got := c.Limiter().Stats(time.Now()).MaxInFlight; got != 1024 {
			t.Errorf("a client %s got the limit %d", who, got)
		}
	}
}
