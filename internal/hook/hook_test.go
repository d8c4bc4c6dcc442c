package hook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const body, key = `{"ref":"refs/heads/main"}`, "hook-key"

func TestAPushIsAcceptedOnlyWithAValidSignature(t *testing.T) {
	mac, wrong := sign([]byte(body), []byte(key)), sign([]byte(body), []byte("another"))
	cases := map[string]struct {
		path, header, value string
		want                int
	}{
		"generic":                         {"/hook/acme", "X-Signature", "sha256=" + mac, 202},
		"GitHub":                          {"/hook/acme", "X-Hub-Signature-256", "sha256=" + mac, 202},
		"Gitea":                           {"/hook/acme", "X-Gitea-Signature", mac, 202},
		"GitLab":                          {"/hook/acme", "X-Gitlab-Token", key, 202},
		"Bitbucket":                       {"/hook/acme", "X-Hub-Signature", "sha256=" + mac, 202},
		"Azure DevOps":                    {"/hook/acme", "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("anyone:"+key)), 202},
		"a registry":                      {"/hook/acme", "Authorization", "Bearer " + key, 202},
		"Harbor":                          {"/hook/acme", "Authorization", key, 202},
		"a wrong password":                {"/hook/acme", "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":another")), 401},
		"the key as basic authentication": {"/hook/acme", "Authorization", "Basic " + key, 401},
		"an empty password":               {"/hook/closed", "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("anyone:")), 401},
		"a signature with SHA-1":          {"/hook/acme", "X-Hub-Signature", "sha1=" + mac[:40], 401},
		"no signature":                    {"/hook/acme", "X-Other", mac, 401},
		"another key":                     {"/hook/acme", "X-Signature", "sha256=" + wrong, 401},
		"no hex":                          {"/hook/acme", "X-Signature", "sha256=zz", 401},
		"a wrong token":                   {"/hook/acme", "X-Gitlab-Token", "hook-kez", 401},
		"a wrong one beside a right":      {"/hook/acme", "X-Signature", "sha256=", 401},
		"no such repository":              {"/hook/other", "X-Signature", "sha256=" + mac, 401},
		"a repository without a hook":     {"/hook/closed", "X-Signature", "sha256=" + mac, 401},
		"half a signature":                {"/hook/acme", "X-Signature", "sha256=" + mac[:32], 401},
		"the key of no key":               {"/hook/closed", "X-Signature", "sha256=" + sign([]byte(body), nil), 401},
		"another path":                    {"/hook/acme/x", "X-Signature", "sha256=" + mac, 404},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			answer := call(s.Handler(), c.path, c.header, c.value, strings.NewReader(body))
			if answer.Code != c.want {
				t.Errorf("got %d, want %d", answer.Code, c.want)
			}
			if strings.Contains(answer.Body.String(), key) {
				t.Error("the answer holds the key")
			}
			if at := requestedAt(t, s); (at != "") != (c.want == 202) {
				t.Errorf("requestedAt is %q after an answer of %d", at, answer.Code)
			}
		})
	}
}

// TestEveryEventOfAGitHostCausesAFetch: also those of pull requests, which previews follow.
func TestEveryEventOfAGitHostCausesAFetch(t *testing.T) {
	for event, content := range map[string]string{
		"push": body, "pull_request": `{"action":"opened","number":12}`, "closed": `{"action":"closed","pull_request":{"merged":true}}`, "ping": "",
	} {
		s := newServer(t)
		request := httptest.NewRequest(http.MethodPost, "/hook/acme", strings.NewReader(content))
		request.Header.Set("X-GitHub-Event", event)
		request.Header.Set("X-Hub-Signature-256", "sha256="+sign([]byte(content), []byte(key)))
		answer := httptest.NewRecorder()
		s.Handler().ServeHTTP(answer, request)
		if answer.Code != http.StatusAccepted || requestedAt(t, s) == "" {
			t.Errorf("%s: got %d, requested at %q", event, answer.Code, requestedAt(t, s))
		}
	}
}

// TestAPushToASourceIsPassedOnAsThatOfTheSource, and not as one to the repository.
func TestAPushToASourceIsPassedOnAsThatOfTheSource(t *testing.T) {
	mac := sign([]byte(body), []byte(key))
	for source, want := range map[string]int{"https://git.example.com/acme/manifests.git": 202, strings.Repeat("x", 2049): 400} {
		s := newServer(t)
		answer := call(s.Handler(), "/hook/acme?source="+url.QueryEscape(source), "X-Signature", mac, strings.NewReader(body))
		if answer.Code != want || requestedAt(t, s) != "" {
			t.Errorf("%.50s: got %d, want %d; requestedAt %q", source, answer.Code, want, requestedAt(t, s))
		}
		repository := &v1alpha1.Repository{}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "acme"}, repository); err != nil {
			t.Fatal(err)
		}
		if pushed := repository.Annotations[v1alpha1.PushedAnnotation]; strings.HasSuffix(pushed, " "+source) != (want == 202) {
			t.Errorf("%.50s: the repository's annotation is %q", source, pushed)
		}
	}
}

// measured is a body that counts how much of it was read.
type measured struct {
	io.Reader
	read int64
}

func (c *measured) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += int64(n)
	return n, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestTheBodyIsReadOnlyForASignature: no body is read if its call cannot be valid.
func TestTheBodyIsReadOnlyForASignature(t *testing.T) {
	const none, wrong = "the call carries no signature, or one that is malformed\n", "the call is not signed with this repository's key\n"
	tooLong, past := fmt.Sprintf("the body is larger than %d bytes\n", maxBody), "reading the body: http: request body too large\n"
	cases := map[string]struct {
		path, header, value string
		size                int64
		code                int
		read                int64
		says, outcome       string
	}{
		"no signature":                       {"/hook/acme", "X-Other", "00", 1 << 20, 401, 0, none, unsigned},
		"one that is no hex":                 {"/hook/acme", "X-Hub-Signature-256", "sha256=zz", 1 << 20, 401, 0, none, unsigned},
		"one that is too short":              {"/hook/acme", "X-Gitea-Signature", "00", 1 << 20, 401, 0, none, unsigned},
		"a wrong token":                      {"/hook/acme", "X-Gitlab-Token", "wrong", 1 << 20, 401, 0, wrong, refused},
		"a wrong one":                        {"/hook/acme", "X-Signature", strings.Repeat("00", 32), 1 << 20, 401, 1 << 20, wrong, refused},
		"a wrong one of no repository":       {"/hook/other", "X-Signature", strings.Repeat("00", 32), 1 << 20, 401, 1 << 20, wrong, refused},
		"a body past the bound":              {"/hook/acme", "X-Signature", strings.Repeat("00", 32), 1 << 40, 413, maxBody + 1, past, tooLarge},
		"a body past the bound, by token":    {"/hook/acme", "X-Gitlab-Token", key, 1 << 40, 413, maxBody + 1, past, tooLarge},
		"a body past it of no repository":    {"/hook/other", "X-Signature", strings.Repeat("00", 32), 1 << 40, 413, maxBody + 1, past, tooLarge},
		"a genuine token, read to its end":   {"/hook/acme", "X-Gitlab-Token", key, 1 << 20, 202, 1 << 20, "", accepted},
		"a genuine token of another's place": {"/hook/closed", "X-Gitlab-Token", key, 1 << 20, 401, 0, wrong, refused},
		"a length past the bound":            {"/hook/acme", "X-Signature", strings.Repeat("00", 32), -1, 413, 0, tooLong, tooLarge},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			sent := &measured{Reader: io.LimitReader(zeros{}, c.size)}
			request := httptest.NewRequest(http.MethodPost, c.path, sent)
			if request.Header.Set(c.header, c.value); c.size < 0 {
				request.ContentLength = maxBody + 1
			}
			answer := httptest.NewRecorder()
			before := testutil.ToFloat64(counted.WithLabelValues(c.outcome))
			s.Handler().ServeHTTP(answer, request)
			if got := answer.Body.String(); got != c.says || testutil.ToFloat64(counted.WithLabelValues(c.outcome)) != before+1 {
				t.Errorf("it says %q, want %q, and counts as %s", got, c.says, c.outcome)
			}
			if answer.Code != c.code || sent.read != c.read {
				t.Errorf("answered %d after %d bytes, want %d after %d", answer.Code, sent.read, c.code, c.read)
			}
			if at := requestedAt(t, s); (at != "") != (c.code == 202) {
				t.Errorf("requestedAt is %q after an answer of %d", at, answer.Code)
			}
		})
	}
}

func call(handler http.Handler, path, header, value string, sent io.Reader) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, sent)
	request.Header.Set(header, value)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

// sign returns the signature of a body as Git hosts send it.
func sign(body, key []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

func newServer(t *testing.T) *Server {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.Repository{
			ObjectMeta: metav1.ObjectMeta{Name: "acme"},
			Spec:       v1alpha1.RepositorySpec{HookSecretRef: &v1alpha1.LocalSecretReference{Name: "acme-hook"}},
		},
		&v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "closed"}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "acme-hook"},
			Data:       map[string][]byte{"token": []byte(key)},
		},
	).Build()
	return &Server{Client: c, Keys: c, Namespace: "kubeop-system", Clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), Log: logr.Discard()}
}

func requestedAt(t *testing.T, s *Server) string {
	t.Helper()
	repository := &v1alpha1.Repository{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "acme"}, repository); err != nil {
		t.Fatal(err)
	}
	return repository.Annotations[meta.ReconcileRequestAnnotation]
}

func FuzzProof(f *testing.F) {
	f.Add("X-Signature", "sha256=00", []byte("{}"))
	f.Add("X-Gitlab-Token", "key", []byte(""))
	f.Add("X-Gitea-Signature", sign([]byte("{}"), nil), []byte("{}"))
	f.Fuzz(func(t *testing.T, name, value string, body []byte) {
		secret := []byte("the key that is not guessed")
		header := http.Header{}
		header.Set(name, value)
		given, ok := proofOf(header)
		if !ok {
			return
		}
		if genuine, err := given.by(nil, bytes.NewReader(body)); err != nil || genuine {
			t.Errorf("%s: %q passed without a key, %v", name, value, err)
		}
		genuine, err := given.by(secret, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if genuine && value != string(secret) && !strings.Contains(strings.ToLower(value), sign(body, secret)) {
			t.Errorf("%s: %q passed as a signature", name, value)
		}
	})
}
