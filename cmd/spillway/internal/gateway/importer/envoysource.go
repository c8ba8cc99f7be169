package importer

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// A File is a certificate or key that a document contains, and the name of the file that the
// configuration reads it from.
type File struct {
	Name    string `json:"name"`
	Private bool   `json:"private"` // it is a key
	Text    Hidden `json:"-"`
}

// Hidden is text that no format verb of package fmt prints.
type Hidden []byte

// Format implements [fmt.Formatter].
func (Hidden) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte("(not shown)")) }

// A source is where a certificate or key comes from: a file, or the text itself.
type source struct {
	at   document.Part // the leaf that says it
	file string
	text []byte
}

// source reads a DataSource of Envoy. A problem says why the configuration cannot name a file for it.
func (e *envoyImport) source(c document.Part, what string) (s source, problem string) {
	file, plain, encoded, variable := c.Get("filename"), c.Get("inline_string"), c.Get("inline_bytes"), c.Get("environment_variable")
	in := "in the configuration of Envoy"
	switch {
	case file.Text() != "":
		return source{at: file, file: file.Text()}, ""
	case plain.Text() != "":
		s = source{at: plain, text: []byte(plain.Text())}
	case encoded.Text() != "":
		s = source{at: encoded, text: decoded(encoded.Text())}
	case variable.Text() != "":
		s, in = source{at: variable}, fmt.Sprintf("in the environment variable %.64q of Envoy", variable.Text())
		if value, set := e.options.Environment(variable.Text()); set {
			s.text = []byte(value)
		}
	default:
		return s, "its " + what + " is not given"
	}
	switch {
	case e.options.Certificates == "":
		e.inside = true
		return s, "its " + what + " is " + in + ", and must be in a file: --certificates DIR writes it to one"
	case len(s.text) == 0 && variable.There():
		return s, "its " + what + " is " + in + ", which is not set here: set it for the import, too"
	default:
		return s, ""
	}
}

// decoded returns bytes as protobuf has them in JSON: in base64 of either alphabet, with or without padding.
func decoded(text string) []byte {
	text = strings.NewReplacer("-", "+", "_", "/", "\n", "", " ", "").Replace(strings.TrimRight(text, "=\n "))
	all, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil // which is no certificate
	}
	return all
}

// unfit says what is wrong with a certificate and its key. Files are not read.
func unfit(certificate, key source) string {
	switch {
	case certificate.file == "" && key.file == "":
		if _, err := tls.X509KeyPair(certificate.text, key.text); err != nil {
			return "its certificate and key cannot be used: " + err.Error()
		}
	case certificate.file == "":
		return unfitCertificates(certificate)
	case key.file == "" && !bytes.Contains(key.text, []byte("PRIVATE KEY-----")):
		return "its key is not in PEM"
	}
	return ""
}

func unfitCertificates(s source) string {
	if s.file == "" && !x509.NewCertPool().AppendCertsFromPEM(s.text) {
		return "its certificates cannot be read as PEM"
	}
	return ""
}

// unsafe are characters that names of files do not get.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// keep returns the file of a source. Text gets a file, of a name that says whose it is; equal texts
// have one file.
func (e *envoyImport) keep(s source, owner, what string) string {
	if s.file != "" {
		return s.file
	}
	private := what == "key"
	for _, f := range e.Files {
		if f.Private == private && bytes.Equal(f.Text, s.text) {
			return f.Name
		}
	}
	base := fmt.Sprintf("%.80s-%s", unsafe.ReplaceAllString(owner, "-"), what)
	name := filepath.Join(e.options.Certificates, base+".pem")
	taken := func(f File) bool { return strings.EqualFold(f.Name, name) } // as some file systems compare
	for n := 2; slices.ContainsFunc(e.Files, taken); n++ {
		name = filepath.Join(e.options.Certificates, fmt.Sprintf("%s-%d.pem", base, n))
	}
	e.Files = append(e.Files, File{name, private, s.text})
	return name
}
