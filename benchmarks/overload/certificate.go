package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"time"
)

// newCertificate returns a certificate for 127.0.0.1 that signs itself, with a key of the
// usual kind.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// rootsOf returns a pool with a certificate in DER, nil without one.
func rootsOf(der []byte) (*x509.CertPool, error) {
	if len(der) == 0 {
		return nil, nil //nolint:nilnil // no TLS, no roots
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errors.New("the certificate of the backend cannot be read")
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool, nil
}
