package transport

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestCredentialsAreReadFromASecret(t *testing.T) {
	cases := map[string]struct {
		data map[string]string
		want Auth
		says string
	}{
		"nothing":     {nil, Auth{}, ""},
		"other keys":  {map[string]string{"token": "x"}, Auth{}, ""},
		"basic":       {map[string]string{"username": "a", "password": "b"}, Auth{Username: "a", Password: "b"}, ""},
		"bearer":      {map[string]string{"bearerToken": "b"}, Auth{BearerToken: "b"}, ""},
		"known_hosts": {map[string]string{"known_hosts": "h ssh-rsa x"}, Auth{KnownHosts: []byte("h ssh-rsa x")}, ""},
		"both":        {map[string]string{"username": "a", "password": "b", "bearerToken": "c"}, Auth{}, `keep one of them; an administrator of the cluster may run: kubectl patch secret git -n team -p '{"data":{"bearerToken":null}}'`},
		"no password": {map[string]string{"username": "a"}, Auth{}, "no password: add it; an administrator of the cluster may run: kubectl create secret generic git -n team " +
			"--from-literal=username=... --from-literal=password=... --dry-run=client -o yaml | kubectl apply -f -"},
		"colon":                 {map[string]string{"username": "a:b", "password": "c"}, Auth{}, "colon"},
		"line break":            {map[string]string{"username": "a", "password": "hunter2\n"}, Auth{}, "password of the Secret holds a line break"},
		"header":                {map[string]string{"bearerToken": "hunter2\r\nX: y"}, Auth{}, "bearerToken of the Secret holds a line break"},
		"no certificate":        {map[string]string{"ca.crt": "hunter2"}, Auth{}, "ca.crt of the Secret holds no certificate"},
		"no key":                {map[string]string{"identity": "hunter2"}, Auth{}, "identity of the Secret is not"},
		"docker garbage":        {map[string]string{".dockerconfigjson": "hunter2"}, Auth{}, ".dockerconfigjson"},
		"an ID alone":           {map[string]string{"githubAppID": "7"}, Auth{}, "githubAppInstallationID of the Secret is not the number"},
		"an installation alone": {map[string]string{"githubAppInstallationID": "42"}, Auth{}, "githubAppID of the Secret is not the ID"},
		"a key of an App alone": {map[string]string{"githubAppPrivateKey": "hunter2"}, Auth{}, "githubAppID of the Secret is not the ID"},
		"docker auth":           {map[string]string{".dockerconfigjson": `{"auths":{"h":{"auth":"hunter2"}}}`}, Auth{}, `auth of "h"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range tc.data {
				data[key] = []byte(value)
			}
			got, err := AuthFromSecret("team", "git", data)
			if tc.says != "" {
				sources.WantError(t, err, failure.ErrInvalid, tc.says)
				sources.WantNoSecret(t, err, "hunter2")
				return
			}
			if diff := cmp.Diff(tc.want, got, cmp.Transformer("fields", authFields)); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// authFields makes Auth comparable by what it holds; printing it shows nothing.
func authFields(a Auth) map[string]string {
	fields := map[string]string{"user": a.Username, "pass": a.Password, "token": a.BearerToken, "key": string(a.Identity),
		"phrase": string(a.Passphrase), "hosts": string(a.KnownHosts), "ca": string(a.CA), "docker": string(a.DockerConfig),
		"certificate": string(a.Certificate), "private key": string(a.PrivateKey)}
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	return fields
}

func TestAuthShowsNothing(t *testing.T) {
	auth := Auth{
		Username: "hunter2", Password: "hunter2", BearerToken: "hunter2", Identity: []byte("hunter2"),
		Passphrase: []byte("hunter2"), CA: []byte("hunter2"), DockerConfig: []byte("hunter2"),
		Certificate: []byte("hunter2"), PrivateKey: []byte("hunter2"),
	}
	for _, holder := range []any{auth, &auth, struct{ Auth Auth }{auth}, &struct{ Auth Auth }{auth}, []Auth{auth}} {
		asJSON, err := json.Marshal(holder)
		if err != nil {
			t.Error(err)
		}
		for _, shown := range []string{fmt.Sprintf("%v", holder), fmt.Sprintf("%+v", holder), fmt.Sprintf("%#v", holder),
			fmt.Sprintf("%s", holder), fmt.Sprintf("%q", holder), string(asJSON)} {
			if strings.Contains(shown, "hunter2") || strings.Contains(shown, "104 117") {
				t.Errorf("shown: %s", shown)
			}
		}
	}
	if got, want := fmt.Sprint(auth), "bearerToken"; !strings.Contains(got, want) {
		t.Errorf("says nothing: %q, want %q in it", got, want)
	}
}

func TestAuthSaysWhichCredentialsThereAre(t *testing.T) {
	some := []byte("x")
	for want, c := range map[string]struct {
		auth Auth
		keys string
	}{
		"Auth{}":                      {Auth{}, "username password"},
		"Auth{basic, ca.crt}":         {Auth{Username: "u", CA: some}, "username password ca.crt"},
		"Auth{basic, tls.crt}":        {Auth{Password: "p", Certificate: some}, "username password tls.crt tls.key"},
		"Auth{bearerToken}":           {Auth{BearerToken: "t"}, "bearerToken"},
		"Auth{identity, known_hosts}": {Auth{Identity: some, KnownHosts: some}, "identity known_hosts"},
		"Auth{identity}":              {Auth{Identity: some, Passphrase: some, KnownHosts: []byte(" \n")}, "identity known_hosts password"},
		"Auth{.dockerconfigjson}":     {Auth{DockerConfig: some, PrivateKey: some}, ".dockerconfigjson tls.crt tls.key"},
		"Auth{ca.crt}":                {Auth{CA: some}, "ca.crt"},
		"Auth{githubApp}":             {Auth{App: &GitHubApp{}}, "githubAppID githubAppInstallationID githubAppPrivateKey"},
	} {
		if got, keys := c.auth.String(), strings.Join(c.auth.keys(), " "); got != want || keys != c.keys {
			t.Errorf("got %s with the keys %s, want %s with %s", got, keys, want, c.keys)
		}
	}
}

func TestTheDockerConfigHasTheCredentialsOfAHost(t *testing.T) {
	config := []byte(`{"auths":{
		"https://registry.example.com/v1/":{"auth":"Ym90OnBhOnNz"},
		"plain.example.com:5000":{"username":"u","password":"p"},
		"token.example.com":{"identitytoken":"refresh"},
		"https://index.docker.io/v1/":{"username":"hub","password":"p"}}}`)
	cases := map[string]struct {
		auth    Auth
		want    Auth
		refresh string
	}{
		"registry.example.com":     {Auth{DockerConfig: config}, Auth{Username: "bot", Password: "pa:ss", DockerConfig: config}, ""},
		"plain.example.com:5000":   {Auth{DockerConfig: config}, Auth{Username: "u", Password: "p", DockerConfig: config}, ""},
		"plain.example.com":        {Auth{DockerConfig: config}, Auth{DockerConfig: config}, ""},
		"token.example.com":        {Auth{DockerConfig: config}, Auth{DockerConfig: config}, "refresh"},
		"registry-1.docker.io":     {Auth{DockerConfig: config}, Auth{Username: "hub", Password: "p", DockerConfig: config}, ""},
		"registry.example.com/own": {Auth{Username: "own", Password: "x", DockerConfig: config}, Auth{Username: "own", Password: "x", DockerConfig: config}, ""},
		"no.example.com":           {},
		"other.example.com":        {Auth{Username: "own", Password: "x"}, Auth{Username: "own", Password: "x"}, ""},
	}
	for host, tc := range cases {
		t.Run(host, func(t *testing.T) {
			got, refresh, err := tc.auth.ForHost(host)
			if diff := cmp.Diff(tc.want, got, cmp.Transformer("fields", authFields)); err != nil || diff != "" || refresh != tc.refresh {
				t.Errorf("%v %q\n%s", err, refresh, diff)
			}
		})
	}
}

func TestForHostTakesTheLongestPlaceAndOnlyWholeSegments(t *testing.T) {
	config := []byte(`{"auths":{
		"r.example":{"username":"host"},
		"https://R.example/team/":{"username":"team"},
		"r.example/team/app":{"username":"app"},
		"r.example/bare":{"registrytoken":"t"}}}`)
	for place, want := range map[string]Auth{
		"r.example/team/app/web": {Username: "app"}, "r.example/team/app": {Username: "app"}, "r.example/team/apple": {Username: "team"},
		"r.example/team": {Username: "team"}, "r.example/teams": {Username: "host"}, "R.EXAMPLE/x": {Username: "host"},
		"r.example/bare/web": {BearerToken: "t"}, "r.example:443/team": {}, "example/team": {},
	} {
		got, _, err := Auth{DockerConfig: config}.ForHost(place)
		want.DockerConfig = config
		if diff := cmp.Diff(want, got, cmp.Transformer("fields", authFields)); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", place, err, diff)
		}
	}
	if _, _, err := (Auth{DockerConfig: []byte("x")}).ForHost("r.example"); !errors.Is(err, failure.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestADockerConfigIsReadByHost(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want map[string]dockerEntry
		says string
	}{
		"empty":           {"{}", map[string]dockerEntry{}, ""},
		"auth wins":       {`{"auths":{"h":{"auth":"Ym90OmE6Yg==","username":"x","password":"y"}}}`, map[string]dockerEntry{"h": {Auth: "Ym90OmE6Yg==", Username: "bot", Password: "a:b"}}, ""},
		"zeros at an end": {`{"auths":{"h":{"auth":"Ym90OmEAAA=="}}}`, map[string]dockerEntry{"h": {Auth: "Ym90OmEAAA==", Username: "bot", Password: "a"}}, ""},
		"Docker Hub":      {`{"auths":{"https://index.docker.io/v1/":{"username":"x"}}}`, map[string]dockerEntry{"registry-1.docker.io": {Username: "x"}}, ""},
		"Docker Hub, new": {`{"auths":{"docker.io":{"username":"x"}}}`, map[string]dockerEntry{"registry-1.docker.io": {Username: "x"}}, ""},
		"version 2":       {`{"auths":{"http://H:5000/v2/":{"username":"x"}}}`, map[string]dockerEntry{"h:5000": {Username: "x"}}, ""},
		"v1 in a path":    {`{"auths":{"h/v1/app":{"username":"x"}}}`, map[string]dockerEntry{"h/v1/app": {Username: "x"}}, ""},
		"no colon":        {`{"auths":{"h":{"auth":"Ym90"}}}`, nil, `auth of "h" is not base64 of user:password`},
		"a list":          {`[]`, nil, "is not the JSON of a Docker configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseDockerConfig([]byte(tc.text))
			if tc.says != "" {
				sources.WantError(t, err, failure.ErrInvalid, tc.says)
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// clientCertificate is one with its key, both in PEM.
func clientCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	made, err := x509.CreateCertificate(rand.Reader, about, about, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestKeysOfASecretThatBelongTogetherAreNeededTogether(t *testing.T) {
	certificate, key := clientCertificate(t)
	other, _ := clientCertificate(t)
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(secret, "", []byte("hunter2"))
	if err != nil {
		t.Fatal(err)
	}
	encrypted := pem.EncodeToMemory(block)
	_, plain := sources.NewSSHKey(t)
	for name, tc := range map[string]struct {
		auth Auth
		says string
	}{
		"a certificate and its key":     {Auth{Certificate: certificate, PrivateKey: key}, ""},
		"a certificate alone":           {Auth{Certificate: certificate}, "the Secret holds tls.crt but no tls.key: add it"},
		"a key alone":                   {Auth{PrivateKey: key}, "the Secret holds tls.key but no tls.crt: add it"},
		"the key of another":            {Auth{Certificate: other, PrivateKey: key}, "tls.crt and tls.key of the Secret are not a certificate and its private key"},
		"an authority":                  {Auth{CA: certificate}, ""},
		"an SSH key":                    {Auth{Identity: plain}, ""},
		"an SSH key and who it is of":   {Auth{Identity: plain, Username: "git"}, ""},
		"an SSH key and a token":        {Auth{Identity: plain, Username: "git", BearerToken: "t"}, ""},
		"an encrypted SSH key":          {Auth{Identity: encrypted, Passphrase: []byte("hunter2")}, ""},
		"encrypted, without passphrase": {Auth{Identity: encrypted}, "identity of the Secret is encrypted: add its passphrase as password"},
		"encrypted, another passphrase": {Auth{Identity: encrypted, Passphrase: []byte("hunter3")}, "password of the Secret does not decrypt identity"},
		"a password without a user":     {Auth{Password: "p"}, ""},
		"a token and a password":        {Auth{Password: "p", BearerToken: "t"}, "both bearerToken and username or password"},
		"a zero byte":                   {Auth{BearerToken: "a\x00"}, "bearerToken of the Secret holds a line break"},
		"a line break in the name":      {Auth{Username: "a\r", Password: "p"}, "username of the Secret holds a line break"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.auth.Check()
			if tc.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			sources.WantError(t, err, failure.ErrInvalid, tc.says)
		})
	}
}

func TestAPasswordBesideAnIdentityIsItsPassphrase(t *testing.T) {
	_, plain := sources.NewSSHKey(t)
	got, err := AuthFromSecret("team", "git", map[string][]byte{"identity": plain, "password": []byte("p")})
	if err != nil || string(got.Passphrase) != "p" {
		t.Errorf("%v: passphrase %q", err, got.Passphrase)
	}
	got, err = AuthFromSecret("team", "git", map[string][]byte{"username": []byte("u"), "password": []byte("p")})
	if err != nil || got.Passphrase != nil {
		t.Errorf("%v: passphrase %q", err, got.Passphrase)
	}
}

func TestAllKeysOfASecretAreRead(t *testing.T) {
	certificate, key := clientCertificate(t)
	data := map[string][]byte{
		"ca.crt": certificate, "tls.crt": certificate, "tls.key": key, ".dockerconfigjson": []byte("{}"), "known_hosts": []byte("h ssh-rsa x"),
		"githubAppID": []byte("7"), "githubAppInstallationID": []byte("42"), "githubAppPrivateKey": newGitHub(t).privateKey(), "githubAppBaseURL": []byte("https://github.example.com/api/v3"),
	}
	got, err := AuthFromSecret("team", "git", data)
	if err != nil {
		t.Fatal(err)
	}
	want := Auth{CA: certificate, Certificate: certificate, PrivateKey: key, DockerConfig: []byte("{}"), KnownHosts: []byte("h ssh-rsa x")}
	if diff := cmp.Diff(want, got, cmp.Transformer("fields", authFields)); diff != "" || got.Secret != "team/git" {
		t.Errorf("of Secret %s: %s", got.Secret, diff)
	}
	app := GitHubApp{ID: "7", Installation: "42", PrivateKey: data["githubAppPrivateKey"], BaseURL: "https://github.example.com/api/v3"}
	if got.App == nil || cmp.Diff(app, *got.App) != "" {
		t.Errorf("the App is %+v", got.App)
	}
	for says, change := range map[string]map[string]string{
		"a GitHub App and username, password or bearerToken": {"bearerToken": "t"},
		"githubAppBaseURL of the Secret is not":              {"githubAppBaseURL": "ftp://github.example.com"},
		"githubAppPrivateKey of the Secret is not":           {"githubAppPrivateKey": "hunter2"},
		"githubAppID of the Secret is not":                   {"githubAppID": "a b"},
	} {
		other := maps.Clone(data)
		for name, value := range change {
			other[name] = []byte(value)
		}
		_, err := AuthFromSecret("team", "git", other)
		sources.WantError(t, err, failure.ErrInvalid, says)
		sources.WantNoSecret(t, err, "hunter2")
	}
}

func TestRedactTakesOutEveryFormOfASecret(t *testing.T) {
	auth := Auth{Username: "bot", Password: "a b/c+d", BearerToken: "t0ken", Passphrase: []byte("phrase")}
	for name, tc := range map[string]struct{ text, want string }{
		"as it is":            {"no a b/c+d here", "no *** here"},
		"in a query":          {"?p=a+b%2Fc%2Bd&x", "?p=***&x"},
		"in a path":           {"/a%20b%2Fc+d/x", "/***/x"},
		"in base64":           {"got YSBiL2MrZA==", "got ***"},
		"as basic":            {"Basic Ym90OmEgYi9jK2Q=", "Basic ***"},
		"a token":             {"Bearer t0ken, Bearer t0ken", "Bearer ***, Bearer ***"},
		"a passphrase":        {"phrase", "***"},
		"the name of a user":  {"user bot", "user bot"},
		"nothing of a secret": {"no such tag", "no such tag"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := auth.Redact(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := (Auth{Password: "ab", BearerToken: "abc"}).Redact("abc"); got != "***" {
		t.Errorf("a secret within a secret leaves %q, want %q", got, "***")
	}
	if got := (Auth{}).Redact("text"); got != "text" {
		t.Errorf("without a secret: %q, want %q", got, "text")
	}
}

func TestTheSecretIsNamedWhereItMayBeTheCause(t *testing.T) {
	named := Auth{Secret: "team/git"}
	const (
		write = "an administrator of the cluster may run: kubectl create secret generic git -n team "
		apply = " --dry-run=client -o yaml | kubectl apply -f -"
	)
	for name, tc := range map[string]struct {
		auth Auth
		err  error
		want string
	}{
		"credentials": {named, failure.New(failure.ErrAuthentication, "x"), "x; the credentials are those of Secret team/git; " + write + "--from-literal=username=... --from-literal=password=..." + apply},
		"an SSH key": {
			Auth{Secret: "team/git", Identity: []byte("x"), Passphrase: []byte("x"), CA: []byte("x")}, failure.New(failure.ErrAuthentication, "x"),
			"x; the credentials are those of Secret team/git; " + write + "--from-file=identity=... --from-file=known_hosts=... --from-literal=password=... --from-file=ca.crt=..." + apply,
		},
		"of a registry": {
			Auth{Secret: "team/git", DockerConfig: []byte("x")}, failure.New(failure.ErrAuthentication, "x"),
			"x; the credentials are those of Secret team/git; " + write + "--from-file=.dockerconfigjson=..." + apply,
		},
		"what it lacks": {named, RequestError(x509.UnknownAuthorityError{}, "h"), "the certificate of h is signed by an unknown authority: add the authority as ca.crt to the Secret that " +
			"secretRef names in Git; " + write + "--from-file=ca.crt=..." + apply},
		"not found":     {named, failure.New(failure.ErrNotFound, "x"), "x; the credentials are those of Secret team/git; " + write + "--from-literal=username=... --from-literal=password=..." + apply},
		"another cause": {named, failure.New(failure.ErrServer, "x"), "x"},
		"no Secret":     {Auth{}, failure.New(failure.ErrAuthentication, "x"), "x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.auth.NameSecret(tc.err); got.Error() != tc.want || !errors.Is(got, errors.Unwrap(tc.err)) && !errors.Is(got, tc.err) {
				t.Errorf("got %v", got)
			}
		})
	}
	if got, want := (Auth{BearerToken: "t"}).Write("bearerToken"), "the field secretRef in Git names it"; got != want {
		t.Errorf("without a Secret: %s, want %s", got, want)
	}
	copied := Auth{Username: "u", Password: "hunter2", DockerConfig: []byte(`{}`), CA: []byte("x"), Secret: "ns/kubeop-registry-ghcr"}.OfRegistry("ghcr")
	want := "refused; the credentials are those of Registry ghcr: ask an administrator of the cluster to correct its Secret, or name a Secret of your own in Git"
	if got := copied.NameSecret(failure.New(failure.ErrAuthentication, "refused")); got.Error() != want || !errors.Is(got, failure.ErrAuthentication) || !copied.Anonymous() {
		t.Errorf("a Registry: %v", got)
	}
	if err := named.NameSecret(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

func TestOtherHostsKnowNoCredentialsOfTheOrigin(t *testing.T) {
	all := Auth{Username: "u", Password: "p", BearerToken: "t", Identity: []byte("i"), Passphrase: []byte("ph"), KnownHosts: []byte("k"), CA: []byte("ca"),
		Certificate: []byte("c"), PrivateKey: []byte("pk"), DockerConfig: []byte("d"), Secret: "s"}
	want := Auth{CA: []byte("ca"), DockerConfig: []byte("d")}
	if diff := cmp.Diff(want, all.ForOtherHosts(), cmp.Transformer("fields", authFields)); diff != "" {
		t.Error(diff)
	}
}

func TestDigestDiffersBySource(t *testing.T) {
	seen := map[string]string{}
	for name, key := range map[string]string{
		"anonymous": Auth{}.Digest("https://h/a"), "other url": Auth{}.Digest("https://h/b"),
		"ab c": Auth{Username: "ab", Password: "c"}.Digest("https://h/a"), "a bc": Auth{Username: "a", Password: "bc"}.Digest("https://h/a"),
		"bearer": Auth{BearerToken: "abc"}.Digest("https://h/a"), "ca": Auth{CA: []byte("abc")}.Digest("https://h/a"),
		"docker": Auth{DockerConfig: []byte("abc")}.Digest("https://h/a"), "key": Auth{Identity: []byte("abc")}.Digest("https://h/a"),
		"certificate": Auth{Certificate: []byte("abc")}.Digest("https://h/a"), "private key": Auth{PrivateKey: []byte("abc")}.Digest("https://h/a"),
		"passphrase": Auth{Passphrase: []byte("abc")}.Digest("https://h/a"), "host keys": Auth{KnownHosts: []byte("abc")}.Digest("https://h/a"),
		"app": Auth{App: &GitHubApp{ID: "7"}}.Digest("https://h/a"), "installation": Auth{App: &GitHubApp{ID: "7", Installation: "42"}}.Digest("https://h/a"),
		"app's key": Auth{App: &GitHubApp{ID: "7", PrivateKey: []byte("42")}}.Digest("https://h/a"), "app's API": Auth{App: &GitHubApp{ID: "7", BaseURL: "42"}}.Digest("https://h/a"),
	} {
		if other, taken := seen[key]; taken {
			t.Errorf("%s and %s share a store", name, other)
		}
		seen[key] = name
	}
}

func FuzzAuthFromSecret(f *testing.F) {
	f.Add("user", "pass", "", "", "", "", "")
	f.Add("", "", "token", "", "", "", `{"auths":{"h":{"auth":"YTpi"}}}`)
	f.Add("", "phrase", "", "-----BEGIN OPENSSH PRIVATE KEY-----\n", "h ssh-ed25519 AAAA", "-----BEGIN CERTIFICATE-----\n", "{}")
	f.Fuzz(func(t *testing.T, user, password, token, identity, hosts, ca, docker string) {
		auth, err := AuthFromSecret("team", "git", map[string][]byte{
			"username": []byte(user), "password": []byte(password), "bearerToken": []byte(token), "identity": []byte(identity),
			"known_hosts": []byte(hosts), "ca.crt": []byte(ca), ".dockerconfigjson": []byte(docker),
		})
		if err != nil {
			sources.WantError(t, err, failure.ErrInvalid, "the Secret")
			// Short strings occur in any sentence.
			if len(password) > 12 && strings.Contains(err.Error(), password) {
				t.Errorf("the password is in the error: %v", err)
			}
			return
		}
		if strings.ContainsAny(auth.Password+auth.BearerToken, "\r\n") {
			t.Error("a line break passed")
		}
		if _, _, err := auth.ForHost("h"); err != nil {
			t.Errorf("accepted and then refused: %v", err)
		}
	})
}
