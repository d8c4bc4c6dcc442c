package transport

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/mask"
)

// The keys of a Secret with credentials; the same as Flux's.
const (
	usernameKey     = "username"
	passwordKey     = "password"
	bearerTokenKey  = "bearerToken"
	identityKey     = "identity"
	knownHostsKey   = "known_hosts"
	caKey           = "ca.crt"
	certificateKey  = "tls.crt"
	privateKeyKey   = "tls.key"
	dockerConfigKey = ".dockerconfigjson"
)

// Auth has the credentials for a server, and what to trust about the server. The zero value is anonymous. Printing or marshalling it never
// shows a secret.
type Auth struct {
	// Username and Password are sent as HTTP basic authentication.
	Username, Password string
	// BearerToken is sent as "Authorization: Bearer …"; not together with Username and Password.
	BearerToken string
	// Identity is a private SSH key in PEM; Passphrase decrypts it if it is encrypted.
	Identity, Passphrase []byte
	// KnownHosts are the SSH host keys to trust, in the format of ssh_known_hosts. Required for ssh:// URLs.
	KnownHosts []byte
	// CA are certificate authorities in PEM, trusted in addition to the system's.
	CA []byte
	// Certificate and PrivateKey are a client certificate in PEM. It is presented to the host of the source and to no other.
	Certificate, PrivateKey []byte
	// DockerConfig is a .dockerconfigjson with credentials per host[:port][/path]; the longest that matches is used.
	DockerConfig []byte
	// App is a GitHub App, for GitHub's Git repositories and API; not together with other credentials of a header.
	App *GitHubApp
	// Secret is the name of the Secret, as "namespace/name", for messages; "" if there is none.
	Secret string
	// Registry is the name of the Registry whose credentials the Secret holds a copy of, for messages; "" if it holds others.
	Registry string
}

// AuthFromSecret reads the data of the Secret of this namespace and name. Keys: username and password; bearerToken; identity with known_hosts,
// where password decrypts the key; ca.crt; tls.crt with tls.key; .dockerconfigjson; githubAppID, githubAppInstallationID and
// githubAppPrivateKey, with githubAppBaseURL. Other keys are ignored, and a nil map is
// anonymous.
// Unusable data is ErrInvalid, naming the key, and who may replace it by which command.
func AuthFromSecret(namespace, name string, data map[string][]byte) (Auth, error) {
	auth := Auth{
		Username:     string(data[usernameKey]),
		Password:     string(data[passwordKey]),
		BearerToken:  string(data[bearerTokenKey]),
		Identity:     data[identityKey],
		KnownHosts:   data[knownHostsKey],
		CA:           data[caKey],
		Certificate:  data[certificateKey],
		PrivateKey:   data[privateKeyKey],
		DockerConfig: data[dockerConfigKey],
		App:          appFrom(data),
		Secret:       namespace + "/" + name,
	}
	if len(auth.Identity) > 0 {
		auth.Passphrase = data[passwordKey]
	}
	err := auth.Check()
	switch {
	case err == nil:
		return auth, nil
	case auth.ambiguous():
		return Auth{}, fmt.Errorf("%w; %s", err, command.RemoveKey(namespace, name, bearerTokenKey))
	}
	return Auth{}, fmt.Errorf("%w; %s", err, auth.Write())
}

// ambiguous reports whether there are two credentials for the same header.
func (a Auth) ambiguous() bool {
	return a.BearerToken != "" && (a.Username != "" || a.Password != "") && len(a.Identity) == 0
}

// Check returns ErrInvalid for credentials that cannot be used, naming the key of the Secret.
func (a Auth) Check() error {
	for key, value := range map[string]string{usernameKey: a.Username, passwordKey: a.Password, bearerTokenKey: a.BearerToken} {
		// A line break comes from "echo secret | base64" and is never part of a credential; servers would only answer 401.
		if strings.ContainsAny(value, "\r\n\x00") {
			return failure.New(failure.ErrInvalid, "%s of the Secret holds a line break: write it without one", key)
		}
	}
	switch {
	case a.ambiguous():
		return failure.New(failure.ErrInvalid, "the Secret holds both bearerToken and username or password: keep one of them")
	case a.Username != "" && a.Password == "" && len(a.Identity) == 0:
		return failure.New(failure.ErrInvalid, "the Secret holds username but no password: add it")
	case strings.Contains(a.Username, ":"):
		return failure.New(failure.ErrInvalid, "username of the Secret holds a colon, which basic authentication cannot carry")
	}
	if a.App != nil && (a.BearerToken != "" || a.Username != "" || a.Password != "") {
		return failure.New(failure.ErrInvalid, "the Secret holds a GitHub App and username, password or bearerToken: keep one of them")
	}
	if err := a.App.check(); err != nil {
		return err
	}
	if _, err := a.Signer(); err != nil {
		return err
	}
	if _, err := a.roots(); err != nil {
		return err
	}
	if _, err := a.certificates(); err != nil {
		return err
	}
	_, err := parseDockerConfig(a.DockerConfig)
	return err
}

// NameSecret adds the name of the Secret to an error that its credentials may have caused, ErrAuthentication and ErrNotFound, and how to
// write it.
func (a Auth) NameSecret(err error) error {
	if a.Secret == "" || !errors.Is(err, failure.ErrAuthentication) && !errors.Is(err, failure.ErrNotFound) {
		return err
	}
	var lacks *lackError
	if errors.As(err, &lacks) {
		return fmt.Errorf("%w; %s", err, a.Write(lacks.keys...))
	}
	if a.Registry != "" {
		return fmt.Errorf("%w; the credentials are those of Registry %s: %s", err, a.Registry, a.Write())
	}
	return fmt.Errorf("%w; the credentials are those of Secret %s; %s", err, a.Secret, a.Write())
}

// OfRegistry returns the credentials of a host from a copy of those of a Registry, and nothing else of the Secret but the authorities to trust.
func (a Auth) OfRegistry(registry string) Auth {
	return Auth{DockerConfig: a.DockerConfig, CA: a.CA, Secret: a.Secret, Registry: registry}
}

// lackError means that a server wants what these keys of a Secret hold.
type lackError struct {
	error
	keys []string
}

// Unwrap returns what says so.
func (e *lackError) Unwrap() error { return e.error }

// Write returns the sentence that says who may write the Secret, and how: with these keys, or without any with those of the credentials.
func (a Auth) Write(keys ...string) string {
	switch {
	case a.Secret == "":
		return "the field secretRef in Git names it"
	case a.Registry != "":
		return fmt.Sprintf("ask %s to correct its Secret, or name a Secret of your own in Git", command.Administrator)
	}
	if len(keys) == 0 {
		keys = a.keys()
	}
	namespace, name, _ := strings.Cut(a.Secret, "/")
	return command.WriteSecret(namespace, name, keys...)
}

// keys returns the keys that a Secret with credentials of this sort has.
func (a Auth) keys() []string {
	var keys []string
	switch {
	case len(a.Identity) > 0:
		if keys = append(keys, identityKey, knownHostsKey); len(a.Passphrase) > 0 {
			keys = append(keys, passwordKey)
		}
	case a.App != nil:
		keys = append(keys, appIDKey, appInstallationKey, appPrivateKeyKey)
	case a.BearerToken != "":
		keys = append(keys, bearerTokenKey)
	case a.Username != "" || a.Password != "":
		keys = append(keys, usernameKey, passwordKey)
	}
	if len(a.DockerConfig) > 0 {
		keys = append(keys, dockerConfigKey)
	}
	if len(a.Certificate) > 0 || len(a.PrivateKey) > 0 {
		keys = append(keys, certificateKey, privateKeyKey)
	}
	if len(a.CA) > 0 {
		keys = append(keys, caKey)
	}
	if len(keys) == 0 {
		keys = append(keys, usernameKey, passwordKey)
	}
	return keys
}

// Anonymous reports whether no credentials are sent in an HTTP header.
func (a Auth) Anonymous() bool {
	return a.Username == "" && a.Password == "" && a.BearerToken == "" && a.App == nil
}

// Signer returns the SSH key, nil if there is none.
func (a Auth) Signer() (ssh.Signer, error) {
	if len(a.Identity) == 0 {
		return nil, nil
	}
	signer, err := ssh.ParsePrivateKey(a.Identity)
	if err == nil {
		return signer, nil
	}
	// The cause is left out of the messages: a parser may quote its input.
	if !errors.As(err, new(*ssh.PassphraseMissingError)) {
		return nil, failure.New(failure.ErrInvalid, "identity of the Secret is not a private SSH key in PEM")
	}
	if len(a.Passphrase) == 0 {
		return nil, failure.New(failure.ErrInvalid, "identity of the Secret is encrypted: add its passphrase as password")
	}
	if signer, err = ssh.ParsePrivateKeyWithPassphrase(a.Identity, a.Passphrase); err != nil {
		return nil, failure.New(failure.ErrInvalid, "password of the Secret does not decrypt identity")
	}
	return signer, nil
}

// roots returns the certificate authorities to trust, nil for the system's.
func (a Auth) roots() (*x509.CertPool, error) {
	if len(a.CA) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(a.CA) {
		return nil, failure.New(failure.ErrInvalid, "ca.crt of the Secret holds no certificate in PEM")
	}
	return pool, nil
}

// certificates returns the client certificate, if there is one.
func (a Auth) certificates() ([]tls.Certificate, error) {
	switch {
	case len(a.Certificate) == 0 && len(a.PrivateKey) == 0:
		return nil, nil
	case len(a.PrivateKey) == 0:
		return nil, failure.New(failure.ErrInvalid, "the Secret holds tls.crt but no tls.key: add it")
	case len(a.Certificate) == 0:
		return nil, failure.New(failure.ErrInvalid, "the Secret holds tls.key but no tls.crt: add it")
	}
	pair, err := tls.X509KeyPair(a.Certificate, a.PrivateKey)
	if err != nil {
		// The cause is left out: it may quote the key.
		return nil, failure.New(failure.ErrInvalid, "tls.crt and tls.key of the Secret are not a certificate and its private key in PEM")
	}
	return []tls.Certificate{pair}, nil
}

// ForOtherHosts returns what another host than that of the credentials may get: the authorities to trust, and the credentials that name
// their hosts.
func (a Auth) ForOtherHosts() Auth { return Auth{CA: a.CA, DockerConfig: a.DockerConfig} }

// ForHost completes the credentials with those that DockerConfig has for the longest beginning of host[:port][/path]; explicit ones take
// precedence. The second result is a refresh token.
func (a Auth) ForHost(place string) (Auth, string, error) {
	if !a.Anonymous() || len(a.DockerConfig) == 0 {
		return a, "", nil
	}
	byPlace, err := parseDockerConfig(a.DockerConfig)
	if err != nil {
		return Auth{}, "", err
	}
	at := registryPlace(place)
	for {
		if entry, ok := byPlace[at]; ok {
			a.Username, a.Password, a.BearerToken = entry.Username, entry.Password, entry.RegistryToken
			return a, entry.IdentityToken, nil
		}
		cut := strings.LastIndex(at, "/")
		if cut < 0 {
			return a, "", nil
		}
		at = at[:cut]
	}
}

// Digest identifies the pair of URL and credentials, so that no source reads from a store filled with other credentials.
func (a Auth) Digest(url string) string {
	hash := sha256.New()
	for _, part := range [][]byte{
		[]byte(url), []byte(a.Username), []byte(a.Password), []byte(a.BearerToken),
		a.Identity, a.Passphrase, a.KnownHosts, a.CA, a.DockerConfig,
		a.Certificate, a.PrivateKey, a.App.digest(),
	} {
		// The length in front keeps "ab"+"c" apart from "a"+"bc".
		_ = binary.Write(hash, binary.BigEndian, int64(len(part)))
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Redact removes every secret from text that a server sent, in any form in which we send it.
func (a Auth) Redact(text string) string {
	basic := base64.StdEncoding.EncodeToString([]byte(a.Username + ":" + a.Password))
	forms := []string{basic}
	for _, secret := range []string{a.Password, a.BearerToken, string(a.Passphrase)} {
		if secret == "" {
			continue
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(secret))
		forms = append(forms, secret, url.QueryEscape(secret), url.PathEscape(secret), encoded)
	}
	return mask.Texts(forms)(text)
}

// String lists which credentials there are, never their values.
func (a Auth) String() string {
	var has []string
	for name, set := range map[string]bool{
		"basic": a.Username != "" || a.Password != "", "bearerToken": a.BearerToken != "",
		identityKey: len(a.Identity) > 0, knownHostsKey: len(bytes.TrimSpace(a.KnownHosts)) > 0,
		caKey: len(a.CA) > 0, dockerConfigKey: len(a.DockerConfig) > 0, certificateKey: len(a.Certificate) > 0, "githubApp": a.App != nil,
	} {
		if set {
			has = append(has, name)
		}
	}
	slices.Sort(has)
	return "Auth{" + strings.Join(has, ", ") + "}"
}

// GoString is String, for %#v.
func (a Auth) GoString() string { return a.String() }

// MarshalText is String, for loggers that write structs as JSON.
func (a Auth) MarshalText() ([]byte, error) { return []byte(a.String()), nil }
