package transport

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestOpenRegistryRefusesUnusableInput(t *testing.T) {
	for name, tc := range map[string]struct {
		at   string
		auth Auth
		says string
	}{
		"a name in upper case": {"r.example/Web", Auth{}, "r.example/Web is not the name of a repository in an OCI registry"},
		"no path":              {"r.example", Auth{}, "is not the name of a repository"},
		"Docker's config":      {"r.example/web", Auth{DockerConfig: []byte("hunter2")}, ".dockerconfigjson of the Secret"},
		"an authority":         {"r.example/web", Auth{CA: []byte("hunter2")}, "ca.crt of the Secret"},
		"a client certificate": {"r.example/web", Auth{Certificate: []byte("hunter2")}, "no tls.key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenRegistry(nil, tc.at, Access{Auth: tc.auth})
			sources.WantError(t, err, failure.ErrInvalid, tc.says)
			sources.WantNoSecret(t, err, "hunter2")
		})
	}
}

// TestARegistryGetsTheCredentialsOfItsChallenge has Docker's configuration hold those of a path of it.
func TestARegistryGetsTheCredentialsOfItsChallenge(t *testing.T) {
	server := sources.ServeOCI(t, httptest.NewServer)
	digest := server.PushArtifact(t, "1.0", "application/x", []byte("archive"))
	server.Allow, server.Challenge = sources.Basic("bot", "hunter2"), `Basic realm="r"`
	host := server.Listener.Addr().String()
	config := func(key, password string) []byte {
		return fmt.Appendf(nil, `{"auths":{%q:{"username":"bot","password":%q},%q:{"username":"bot","password":"of the host"}}}`, key, password, host)
	}
	for name, tc := range map[string]struct {
		auth Auth
		kind error
		says string
	}{
		"by name":          {Auth{Username: "bot", Password: "hunter2"}, nil, ""},
		"by path":          {Auth{DockerConfig: config(host+"/charts/web", "hunter2")}, nil, ""},
		"by folder":        {Auth{DockerConfig: config("http://"+host+"/charts", "hunter2")}, nil, ""},
		"of another path":  {Auth{DockerConfig: config(host+"/charts/other", "hunter2")}, failure.ErrAuthentication, "rejected the credentials"},
		"of a longer name": {Auth{DockerConfig: config(host+"/chart", "hunter2")}, failure.ErrAuthentication, "rejected the credentials"},
		"none":             {Auth{}, failure.ErrAuthentication, host + " wants credentials for the artifact at this URL"},
	} {
		t.Run(name, func(t *testing.T) {
			registry, err := OpenRegistry(loopback, host+"/charts/web", Access{Auth: tc.auth, Insecure: true})
			if err != nil {
				t.Fatal(err)
			}
			defer registry.Close()
			if want := tc.auth.Anonymous() && tc.auth.DockerConfig == nil; registry.Anonymous() != want {
				t.Errorf("anonymous is %v, want %v", registry.Anonymous(), want)
			}
			found, err := registry.Resolve(t.Context(), "1.0")
			if err == nil && found.Digest.String() != digest {
				t.Errorf("got %s, want %s", found.Digest, digest)
			}
			sources.WantError(t, registry.Failed(err, "artifact"), tc.kind, tc.says)
		})
	}
}

func TestARefreshTokenIsNotAnonymous(t *testing.T) {
	registry, err := OpenRegistry(nil, "r.example/web", Access{Auth: Auth{DockerConfig: []byte(`{"auths":{"r.example":{"identitytoken":"hunter2"}}}`)}})
	if err != nil {
		t.Fatal(err)
	}
	if registry.Anonymous() || registry.PlainHTTP {
		t.Errorf("anonymous %v, without TLS %v", registry.Anonymous(), registry.PlainHTTP)
	}
}

// TestAListOfTagsWithoutEndIsNotReadForever: each page of the registry names a next one.
func TestAListOfTagsWithoutEndIsNotReadForever(t *testing.T) {
	pages := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if pages++; pages > 1000 {
			w.WriteHeader(http.StatusGone)
			return
		}
		w.Header().Set("Link", fmt.Sprintf(`<%s?last=%d>; rel="next"`, req.URL.Path, pages))
		_, _ = fmt.Fprintf(w, `{"tags":["1.0.%d"]}`, pages)
	}))
	t.Cleanup(server.Close)
	registry, err := OpenRegistry(loopback, server.Listener.Addr().String()+"/web", Access{Auth: Auth{}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	read := 0
	err = registry.Tags(t.Context(), "", func(tags []string) error {
		read += len(tags)
		return nil
	})
	if read != 100 || pages != 100 {
		t.Errorf("read %d tags of %d pages", read, pages)
	}
	sources.WantError(t, registry.Failed(err, "artifact"), failure.ErrServer, "answers what cannot be used: too many pages")
}

func TestErrorsOfRegistriesAreExplainedWithoutSecrets(t *testing.T) {
	answer := func(status int) error {
		return fmt.Errorf("resolving: %w", &errcode.ErrorResponse{Method: http.MethodGet, StatusCode: status, URL: &url.URL{Scheme: "https", Host: "r.example", Path: "/hunter2"},
			Errors: errcode.Errors{{Message: "hunter2"}}})
	}
	signed := &url.Error{Op: "Get", URL: "https://s.example/?sig=hunter2", Err: errors.New("connection refused")}
	for name, tc := range map[string]struct {
		err  error
		kind error
		says string
	}{
		"rejected":               {answer(401), failure.ErrAuthentication, "r.example rejected the credentials of the Secret"},
		"not there":              {answer(404), failure.ErrNotFound, "there is no chart at this URL, or the credentials may not see it (404): check the URL in Git, and what the credentials may read"},
		"broken":                 {answer(502), failure.ErrServer, "r.example answered 502 Bad Gateway"},
		"credentials are wanted": {fmt.Errorf("x: %w", auth.ErrBasicCredentialNotFound), failure.ErrAuthentication, "r.example wants credentials for the chart at this URL; some hosts answer so if it does not exist: check the URL in Git, or name a Secret with username and password or .dockerconfigjson in secretRef there"},
		"no such tag":            {fmt.Errorf("x: %w", errdef.ErrNotFound), failure.ErrNotFound, "there is no chart at this URL, or the credentials may not see it: check the URL and the version in Git, and what the credentials may read"},
		"no connection":          {fmt.Errorf("x: %w", signed), failure.ErrUnavailable, "r.example gives no answer: connection refused"},
		"an answer of no sense":  {fmt.Errorf("https://s.example/?sig=hunter2: %w", errors.New("no digest\nfor hunter2")), failure.ErrServer, "r.example answers what cannot be used: no digest for ***"},
	} {
		t.Run(name, func(t *testing.T) {
			registry, err := OpenRegistry(nil, "r.example/web", Access{Auth: Auth{Username: "bot", Password: "hunter2"}})
			if err != nil {
				t.Fatal(err)
			}
			got := registry.Failed(tc.err, "chart")
			sources.WantError(t, got, tc.kind, tc.says)
			if strings.Contains(fmt.Sprint(got), "hunter2") {
				t.Errorf("the message repeats what the server said: %v", got)
			}
			registry.tokens.withheld, registry.tokens.realm = true, &url.URL{Host: "auth.example"}
			got = registry.Failed(tc.err, "chart")
			if withheld := strings.Contains(got.Error(), "tokenServices"); withheld != (name == "rejected" || name == "not there") {
				t.Errorf("while credentials are withheld: %v", got)
			}
		})
	}
	if err := (&Registry{}).Failed(nil, "chart"); err != nil {
		t.Errorf("no error became %v", err)
	}
}

// TestCloseOfARegistryEndsItsConnections, which would be kept for a while.
func TestCloseOfARegistryEndsItsConnections(t *testing.T) {
	idle, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	server := sources.ServeOCI(t, func(handler http.Handler) *httptest.Server {
		server := httptest.NewUnstartedServer(handler)
		server.Config.ConnState = func(_ net.Conn, is http.ConnState) {
			switch is {
			case http.StateIdle:
				idle <- struct{}{}
			case http.StateClosed:
				ended <- struct{}{}
			default:
			}
		}
		server.Start()
		return server
	})
	r, err := OpenRegistry(loopback, server.Listener.Addr().String()+"/charts/web", Access{Auth: Auth{}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = r.Resolve(t.Context(), "none") // There is none; the connection stays.
	<-idle
	r.Close()
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
		t.Error("the connection is kept")
	}
}
