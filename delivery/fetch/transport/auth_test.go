package transport

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestAuthFromSecret(t *testing.T) {
	cases := map[string]struct {
		data map[string]string
		want Auth
		says string
	}{
		"nothing":        {nil, Auth{}, ""},
		"other keys":     {map[string]string{"token": "x"}, Auth{}, ""},
		"basic":          {map[string]string{"username": "a", "password": "b"}, Auth{Username: "a", Password: "b"}, ""},
		"bearer":         {map[string]string{"bearerToken": "b"}, Auth{BearerToken: "b"}, ""},
		"known_hosts":    {map[string]string{"known_hosts": "h ssh-rsa x"}, Auth{KnownHosts: []byte("h ssh-rsa x")}, ""},
		"both":           {map[string]string{"username": "a", "password": "b", "bearerToken": "c"}, Auth{}, "both bearerToken and"},
		"no password":    {map[string]string{"username": "a"}, Auth{}, "no password"},
		"colon":          {map[string]string{"username": "a:b", "password": "c"}, Auth{}, "colon"},
		"line break":     {map[string]string{"username": "a", "password": "hunter2\n"}, Auth{}, "password of the Secret holds a line break"},
		"header":         {map[string]string{"bearerToken": "hunter2\r\nX: y"}, Auth{}, "bearerToken of the Secret holds a line break"},
		"no certificate": {map[string]string{"ca.crt": "hunter2"}, Auth{}, "ca.crt of the Secret holds no certificate"},
		"no key":         {map[string]string{"identity": "hunter2"}, Auth{}, "identity of the Secret is not"},
		"docker garbage": {map[string]string{".dockerconfigjson": "hunter2"}, Auth{}, ".dockerconfigjson"},
		"docker auth":    {map[string]string{".dockerconfigjson": `{"auths":{"h":{"auth":"hunter2"}}}`}, Auth{}, `auth of "h"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range tc.data {
				data[key] = []byte(value)
			}
			got, err := AuthFromSecret(data)
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
	if got := fmt.Sprint(auth); !strings.Contains(got, "bearerToken") {
		t.Errorf("says nothing: %s", got)
	}
}

func TestAuthForHost(t *testing.T) {
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
		"registry.example.com":   {Auth{DockerConfig: config}, Auth{Username: "bot", Password: "pa:ss", DockerConfig: config}, ""},
		"plain.example.com:5000": {Auth{DockerConfig: config}, Auth{Username: "u", Password: "p", DockerConfig: config}, ""},
		"plain.example.com":      {Auth{DockerConfig: config}, Auth{DockerConfig: config}, ""},
		"token.example.com":      {Auth{DockerConfig: config}, Auth{DockerConfig: config}, "refresh"},
		"registry-1.docker.io":   {Auth{DockerConfig: config}, Auth{Username: "hub", Password: "p", DockerConfig: config}, ""},
		"other.example.com":      {Auth{Username: "own", Password: "x"}, Auth{Username: "own", Password: "x"}, ""},
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

func TestDigestDiffersBySource(t *testing.T) {
	seen := map[string]string{}
	for name, key := range map[string]string{
		"anonymous": Auth{}.Digest("https://h/a"), "other url": Auth{}.Digest("https://h/b"),
		"ab c": Auth{Username: "ab", Password: "c"}.Digest("https://h/a"), "a bc": Auth{Username: "a", Password: "bc"}.Digest("https://h/a"),
		"bearer": Auth{BearerToken: "abc"}.Digest("https://h/a"), "ca": Auth{CA: []byte("abc")}.Digest("https://h/a"),
		"docker": Auth{DockerConfig: []byte("abc")}.Digest("https://h/a"), "key": Auth{Identity: []byte("abc")}.Digest("https://h/a"),
		"certificate": Auth{Certificate: []byte("abc")}.Digest("https://h/a"), "private key": Auth{PrivateKey: []byte("abc")}.Digest("https://h/a"),
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
		auth, err := AuthFromSecret(map[string][]byte{
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
