package kubeconfigs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	v1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/ratelimit"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

const all = "/v1/projects/acme/shop/kubeconfigs"

// plane answers as the API server does: with Secrets, and tokens that are bound to one of them.
type plane struct {
	*operated.Served
	*Operations
	t       *testing.T
	secrets map[string]corev1.Secret
	// requested are the last requests for tokens.
	requested []authenticationv1.TokenRequest
	// generation is how often each tenant was created anew.
	generation int
	// born is when the tenants were created.
	born time.Time
	// projects are those of each tenant.
	projects map[string][]string
	// longest is how long the API server makes tokens valid at most.
	longest time.Duration
	// refuse is the status of requests by "method path", 0 for none.
	refuse func(string) int
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	p := &plane{t: t, secrets: map[string]corev1.Secret{}, longest: 48 * time.Hour, refuse: func(string) int { return 0 }}
	server := httptest.NewServer(p.handler())
	t.Cleanup(server.Close)
	client, err := corev1client.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	p.Operations = &Operations{Cluster: client, Server: Server{URL: "https://k.example.com:6443", CA: []byte("CA")}, Manager: "https://kubeop.example.com"}
	p.projects = map[string][]string{"acme": {"blog", "shop"}, "beta": {"shop"}}
	p.Project = func(_ context.Context, tenant, project string) error {
		if slices.Contains(p.projects[tenant], project) {
			return nil
		}
		return problem.New(problem.NotFound, "")
	}
	p.Tenant = func(_ context.Context, name string) (store.TenantRef, error) {
		return store.TenantRef{Name: name, UID: fmt.Sprint(name, " ", p.generation), Created: p.born}, nil
	}
	p.Tenants = func(context.Context) ([]string, error) { return []string{"acme", "beta"}, nil }
	p.Projects = func(_ context.Context, tenant string) ([]string, error) { return p.projects[tenant], nil }
	p.Served = operated.Start(t, func(s *operated.Served, api huma.API) {
		p.Operations.Store, p.Operations.Now, p.Tokens = s.Store, s.Now, NewLimits(s.Now)
		p.Register(api)
	})
	return p
}

func (p *plane) handler() http.Handler {
	mux := http.NewServeMux()
	write := func(w http.ResponseWriter, status int, o any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(o); err != nil {
			p.t.Error(err)
		}
	}
	refused := func(w http.ResponseWriter, status int, kind string) {
		reason := map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict}[status]
		write(w, status, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: reason, Code: int32(status), Details: &metav1.StatusDetails{Kind: kind}})
	}
	read := func(r *http.Request, o any) {
		if err := json.NewDecoder(r.Body).Decode(o); err != nil {
			p.t.Error(err)
		}
	}
	mux.HandleFunc("POST /api/v1/namespaces/{namespace}/secrets", func(w http.ResponseWriter, r *http.Request) {
		var secret corev1.Secret
		read(r, &secret)
		secret.UID = types.UID("uid of " + secret.Name)
		p.secrets[r.PathValue("namespace")+"/"+secret.Name] = secret
		write(w, http.StatusCreated, secret)
	})
	mux.HandleFunc("DELETE /api/v1/namespaces/{namespace}/secrets/{name}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("namespace") + "/" + r.PathValue("name")
		var options metav1.DeleteOptions
		read(r, &options)
		secret, has := p.secrets[name]
		switch {
		case !has:
			refused(w, 404, "secrets")
			return
		case options.Preconditions != nil && *options.Preconditions.UID != secret.UID:
			refused(w, 409, "Secret")
			return
		}
		delete(p.secrets, name)
		write(w, http.StatusOK, metav1.Status{Status: "Success"})
	})
	mux.HandleFunc("POST /api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", func(w http.ResponseWriter, r *http.Request) {
		var request authenticationv1.TokenRequest
		read(r, &request)
		bound := request.Spec.BoundObjectRef
		switch secret, has := p.secrets[r.PathValue("namespace")+"/"+bound.Name]; {
		case !has:
			refused(w, 404, "secrets")
			return
		case secret.UID != bound.UID:
			refused(w, 409, "Secret")
			return
		}
		p.requested = append(p.requested, request)
		life := min(time.Duration(*request.Spec.ExpirationSeconds)*time.Second, p.longest)
		request.Status = authenticationv1.TokenRequestStatus{Token: tokenWith(r.URL.Path, fmt.Sprint("jti-", len(p.requested))), ExpirationTimestamp: metav1.NewTime(p.Time.Add(life))}
		write(w, http.StatusCreated, request)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := p.refuse(r.Method + " " + r.URL.Path); status != 0 {
			refused(w, status, "")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// tokenWith returns what looks like a token with an ID.
func tokenWith(header, id string) string {
	return header + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"jti":"`+id+`"}`)) + ".x"
}

func (p *plane) create(secret, body string) KubeconfigToken {
	p.t.Helper()
	return operated.Read[KubeconfigToken](p.t, p.Do(secret, "POST", all, body), http.StatusCreated)
}

func fileOf(t *testing.T, text string) (file v1.Config) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &file); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return file
}

// TestAKubeconfigHasATokenUntilItIsDeleted: the token is bound to an empty Secret, which a DELETE takes away.
func TestAKubeconfigHasATokenUntilItIsDeleted(t *testing.T) {
	p := newPlane(t)
	ann := p.Token("ann", "tenant:acme:edit")
	made := p.create(ann, `{"name":"laptop","role":"edit","ttl":"30m"}`)
	want := Kubeconfig{ID: made.ID, Name: "laptop", Tenant: "acme", Project: "shop", Role: "edit", Created: p.Time, CreatedBy: "ann", Expires: p.Time.Add(30 * time.Minute)}
	if diff := cmp.Diff(want, made.Kubeconfig); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.HasPrefix(made.Token, "/api/v1/namespaces/kubeop-acme-shop/serviceaccounts/kubeop-access-edit/token") {
		t.Errorf("the token is %s", made.Token)
	}
	secret := p.secrets["kubeop-acme-shop/kubeop-kubeconfig-"+made.ID]
	if secret.Type != "paas.kubeop.io/kubeconfig" || len(secret.Data)+len(secret.StringData) > 0 || secret.Immutable == nil || !*secret.Immutable {
		t.Errorf("the Secret is %+v", secret)
	}
	seconds := int64(1800)
	spec := authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds, BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID}}
	if diff := cmp.Diff(spec, p.requested[0].Spec); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	file := fileOf(t, made.File)
	cluster := file.Clusters[0].Cluster
	user := "acme/shop/edit@k.example.com:6443/" + made.ID
	if got := fmt.Sprintf("%s %v %s %s %s", file.CurrentContext, file.Contexts, file.Clusters[0].Name, cluster.Server, cluster.CertificateAuthorityData); got !=
		"acme/shop [{acme/shop {kubeop@k.example.com:6443 "+user+" kubeop-acme-shop []}}] kubeop@k.example.com:6443 https://k.example.com:6443 CA" {
		t.Errorf("the file has %s", got)
	}
	if diff := cmp.Diff([]v1.NamedAuthInfo{{Name: user, AuthInfo: v1.AuthInfo{Token: made.Token}}}, file.AuthInfos); diff != "" {
		t.Errorf("the users (-want +got):\n%s", diff)
	}

	one := all + "/" + made.ID
	p.Time = p.Time.Add(20 * time.Minute)
	again := operated.Read[KubeconfigToken](t, p.Do(ann, "POST", one+"/token", ""), http.StatusCreated)
	if again.ID != made.ID || again.Token == made.Token || !again.Expires.Equal(p.Time.Add(30*time.Minute)) || len(p.secrets) != 1 {
		t.Errorf("the next token is %+v of %d Secrets", again, len(p.secrets))
	}
	p.refuse = func(what string) int {
		if strings.HasPrefix(what, "DELETE") {
			return 500
		}
		return 0
	}
	if refused := operated.Refused(t, p.Do(ann, "DELETE", one, ""), problem.Unavailable); !strings.Contains(refused.Detail, "may still be valid") {
		t.Errorf("%+v", refused)
	}
	p.refuse = func(string) int { return 0 }
	if answer := p.Do(ann, "DELETE", one, ""); answer.Code != http.StatusNoContent || len(p.secrets) != 0 {
		t.Errorf("%d %s: %d Secrets are left", answer.Code, answer.Body, len(p.secrets))
	}
	operated.Refused(t, p.Do(ann, "POST", one+"/token", ""), problem.NotFound)
	operated.Refused(t, p.Do(ann, "DELETE", one, ""), problem.NotFound)
	events, err := p.Served.Store.ListEvents(t.Context(), "acme", 0, 10)
	var actions []string
	for _, e := range events {
		if object, is := strings.CutPrefix(e.Object, "kubeconfig/acme/shop/edit/"+made.ID); is {
			actions = append(actions, e.Action+" "+e.Actor+" "+object)
		}
	}
	if diff := cmp.Diff([]string{"deleteKubeconfig ann ", "renewKubeconfig ann /jti-2", "createKubeconfig ann /jti-1"}, actions); err != nil || diff != "" {
		t.Errorf("%v: the events (-want +got):\n%s", err, diff)
	}
}

// TestNobodyGetsMoreThanItsRole, and nobody of another tenant or project learns anything.
func TestNobodyGetsMoreThanItsRole(t *testing.T) {
	for scope, want := range map[string][3]int{
		"admin": {201, 201, 201}, "tenant:acme:admin": {201, 201, 201}, "tenant:acme:edit": {201, 201, 403}, "tenant:acme:view": {201, 403, 403},
		"project:acme/shop:view": {201, 403, 403}, "project:acme/shop:edit": {201, 201, 403}, "project:acme/shop:deploy": {201, 403, 403},
	} {
		p := newPlane(t)
		caller := p.Token("caller", scope)
		for i, role := range []string{"view", "edit", "admin"} {
			answer := p.Do(caller, "POST", all, `{"role":"`+role+`"}`)
			if answer.Code != want[i] {
				t.Errorf("%s gets %s: %d %s", scope, role, answer.Code, answer.Body)
			}
			if made := want[i] == 201; made != (len(p.secrets) == i+1) || made && !strings.Contains(p.requested[i].Spec.BoundObjectRef.Name, "kubeop-kubeconfig-") {
				t.Errorf("%s as %s: there are %d Secrets", scope, role, len(p.secrets))
			}
		}
	}
	p := newPlane(t)
	made := p.create(p.Token("ann", "project:acme/shop:edit"), `{"role":"edit"}`)
	for scope, sees := range map[string]bool{"admin": true, "tenant:acme:admin": true, "tenant:acme:edit": false, "project:acme/shop:edit": false, "tenant:beta:admin": false, "project:acme/blog:edit": false} {
		other := p.Token(scope, scope)
		list := p.Do(other, "GET", all, "")
		if sees != strings.Contains(list.Body.String(), made.ID) {
			t.Errorf("%s reads %d %s", scope, list.Code, list.Body)
		}
		operated.Refused(t, p.Do(other, "POST", all+"/"+made.ID+"/token", ""), problem.NotFound)
		if !sees {
			operated.Refused(t, p.Do(other, "DELETE", all+"/"+made.ID, ""), problem.NotFound)
		}
	}
	if answer := p.Do(p.Token("boss", "tenant:acme:admin"), "DELETE", all+"/"+made.ID, ""); answer.Code != http.StatusNoContent || len(p.secrets) != 0 {
		t.Errorf("an administrator: %d %s, %d Secrets", answer.Code, answer.Body, len(p.secrets))
	}
}

// TestTheNextTenantOfTheNameSeesNothing of the kubeconfigs of the one before, which administrators of the platform do.
func TestTheNextTenantOfTheNameSeesNothing(t *testing.T) {
	p := newPlane(t)
	ann, boss, admin := p.Token("ann", "project:acme/shop:edit"), p.Token("boss", "tenant:acme:admin"), p.Token("root", "admin")
	made := p.create(ann, `{"role":"edit"}`)
	one := all + "/" + made.ID
	sees := func(caller string) bool {
		t.Helper()
		return len(operated.Read[page.List[Kubeconfig]](t, p.Do(caller, "GET", all, ""), http.StatusOK).Items) > 0
	}
	if !sees(ann) || !sees(boss) || !sees(admin) {
		t.Error("it is not listed for its tenant")
	}
	p.generation++
	if sees(ann) || sees(boss) || !sees(admin) {
		t.Error("it is listed for the next tenant, or for no administrator")
	}
	for _, caller := range []string{ann, boss} {
		operated.Refused(t, p.Do(caller, "POST", one+"/token", ""), problem.NotFound)
		operated.Refused(t, p.Do(caller, "DELETE", one, ""), problem.NotFound)
	}
	if answer := p.Do(admin, "DELETE", one, ""); answer.Code != http.StatusNoContent || len(p.secrets) != 0 {
		t.Errorf("an administrator: %d %s, %d Secrets", answer.Code, answer.Body, len(p.secrets))
	}
	p.create(ann, `{"role":"edit"}`)
	p.born = p.Time.Add(time.Second)
	if refused := operated.Refused(t, p.Do(ann, "POST", all, `{"role":"edit"}`), problem.Forbidden); !strings.Contains(refused.Detail, "older than the tenant") {
		t.Errorf("a token from before the tenant: %+v", refused)
	}
	p.create(admin, `{"role":"edit"}`)
}

// TestATokenLivesNoLongerThanItMay: as was asked for, as the API server grants, and as long as the caller's own token.
func TestATokenLivesNoLongerThanItMay(t *testing.T) {
	for name, c := range map[string]struct {
		ttl     string
		longest time.Duration
		later   time.Duration
		want    time.Duration // 0: refused.
		code    problem.Code
	}{
		"not said":                  {"", 48 * time.Hour, 0, time.Hour, ""},
		"ten minutes":               {"10m", 48 * time.Hour, 0, 10 * time.Minute, ""},
		"less":                      {"9m59s", 48 * time.Hour, 0, 0, problem.Invalid},
		"more than a day":           {"24h1s", 48 * time.Hour, 0, 0, problem.Invalid},
		"no duration":               {"3600", 48 * time.Hour, 0, 0, problem.Invalid},
		"a negative one":            {"-1h", 48 * time.Hour, 0, 0, problem.Invalid},
		"less is granted":           {"1h", 20 * time.Minute, 0, 20 * time.Minute, ""},
		"longer than the caller":    {"24h", 48 * time.Hour, 0, time.Hour, ""},
		"the caller ends soon":      {"", 48 * time.Hour, 45 * time.Minute, 15 * time.Minute, ""},
		"the caller ends very soon": {"", 48 * time.Hour, 55 * time.Minute, 0, problem.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			ann := p.Token("ann", "tenant:acme:view") // For an hour.
			p.Time, p.longest = p.Time.Add(c.later), c.longest
			answer := p.Do(ann, "POST", all, `{"role":"view","ttl":"`+c.ttl+`"}`)
			if c.want == 0 {
				operated.Refused(t, answer, c.code)
				if len(p.secrets) > 0 {
					t.Error("there is a Secret")
				}
				return
			}
			made := operated.Read[KubeconfigToken](t, answer, http.StatusCreated)
			if !made.Expires.Equal(p.Time.Add(c.want)) {
				t.Errorf("it ends %s", made.Expires)
			}
			if p.Time = made.Expires; c.want+c.later < time.Hour { // The kubeconfig has ended, and the caller's token has not.
				operated.Refused(t, p.Do(ann, "POST", all+"/"+made.ID+"/token", ""), problem.NotFound)
			}
		})
	}
}

// TestAFailedRequestLeavesNothing: no Secret, no record and no event.
func TestAFailedRequestLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		refuse string
		status int
		want   problem.Code
	}{
		"no rights":                {"POST /api/v1/namespaces/kubeop-acme-shop/secrets", 403, problem.Conflict},
		"no API server":            {"POST /api/v1/namespaces/kubeop-acme-shop/secrets", 500, problem.Unavailable},
		"no account":               {"POST /api/v1/namespaces/kubeop-acme-shop/serviceaccounts/kubeop-access-view/token", 404, problem.Conflict},
		"no API server for tokens": {"POST /api/v1/namespaces/kubeop-acme-shop/serviceaccounts/kubeop-access-view/token", 500, problem.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			ann := p.Token("ann", "tenant:acme:view")
			p.refuse = func(what string) int {
				if what == c.refuse {
					return c.status
				}
				return 0
			}
			operated.Refused(t, p.Do(ann, "POST", all, `{"role":"view"}`), c.want)
			left, err := p.Served.Store.ListKubeconfigs(t.Context(), store.KubeconfigFilter{}, 10)
			if err != nil || len(left) > 0 || len(p.secrets) > 0 {
				t.Errorf("%v: %v and %v are left", err, left, p.secrets)
			}
		})
	}
	p := newPlane(t)
	ann := p.Token("ann", "tenant:acme:view")
	p.Cluster = nil
	for _, request := range [][2]string{{"POST", all}, {"GET", "/v1/kubeconfig"}} {
		body := ""
		if request[0] == "POST" {
			body = `{"role":"view"}`
		}
		if refused := operated.Refused(t, p.Do(ann, request[0], request[1], body), problem.Conflict); !strings.Contains(refused.Detail, "manager.kubeconfigs.enabled") {
			t.Errorf("%+v", refused)
		}
	}
}

// refuseOnly has the API server refuse requests whose method and path begin, or end, with this.
func (p *plane) refuseOnly(begins, ends string, status int) {
	p.refuse = func(what string) int {
		if strings.HasPrefix(what, begins) && strings.HasSuffix(what, ends) {
			return status
		}
		return 0
	}
}

// TestAKubeconfigOfAProjectThatIsGoneIsForgotten: the manager has no rights there any more, and no token is valid.
func TestAKubeconfigOfAProjectThatIsGoneIsForgotten(t *testing.T) {
	p := newPlane(t)
	ann := p.Token("ann", "tenant:acme:view")
	made := p.create(ann, `{"role":"view"}`)
	p.refuseOnly("DELETE", "", 403)
	operated.Refused(t, p.Do(ann, "DELETE", all+"/"+made.ID, ""), problem.Unavailable)
	p.projects["acme"] = nil
	if answer := p.Do(ann, "DELETE", all+"/"+made.ID, ""); answer.Code != http.StatusNoContent {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	p.left(0, 1)
}

// TestDeletingTheSecretRevokesTheKubeconfig: the next token is refused as that of one that was deleted.
func TestDeletingTheSecretRevokesTheKubeconfig(t *testing.T) {
	for name, replace := range map[string]bool{"it is gone": false, "there is another one": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			ann := p.Token("ann", "tenant:acme:view")
			made := p.create(ann, `{"role":"view"}`)
			key := "kubeop-acme-shop/kubeop-kubeconfig-" + made.ID
			delete(p.secrets, key)
			want := 0
			if replace {
				p.secrets[key] = corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "another"}}
				want = 1
			}
			operated.Refused(t, p.Do(ann, "POST", all+"/"+made.ID+"/token", ""), problem.NotFound)
			p.left(0, want)
		})
	}
}

// TestNobodyGetsTooMany: neither kubeconfigs nor tokens, and what is refused does not count.
func TestNobodyGetsTooMany(t *testing.T) {
	p := newPlane(t)
	ann, bob := p.Token("ann", "tenant:acme:view"), p.Token("bob", "tenant:acme:view")
	for range store.MaxKubeconfigsOfCaller {
		p.create(ann, `{"role":"view"}`)
	}
	operated.Refused(t, p.Do(ann, "POST", all, `{"role":"view"}`), problem.Conflict)
	p.create(bob, `{"role":"view"}`)

	p = newPlane(t)
	p.Tokens = Limits{OfTenant: ratelimit.New(0.001, 2, p.Served.Now), OfCaller: ratelimit.New(0.001, 1, p.Served.Now)}
	ann, bob = p.Token("ann", "tenant:acme:view"), p.Token("bob", "tenant:acme:view")
	operated.Refused(t, p.Do(ann, "POST", all, `{"role":"view","ttl":"1m"}`), problem.Invalid)
	made := p.create(ann, `{"role":"view"}`)
	for _, path := range []string{all, all + "/" + made.ID + "/token"} {
		body := ""
		if path == all {
			body = `{"role":"view"}`
		}
		if refused := operated.Refused(t, p.Do(ann, "POST", path, body), problem.TooManyRequests); !strings.HasPrefix(refused.Detail, "The caller") {
			t.Errorf("%+v", refused)
		}
	}
	p.create(bob, `{"role":"view"}`)
	if refused := operated.Refused(t, p.Do(p.Token("eve", "tenant:acme:view"), "POST", all, `{"role":"view"}`), problem.TooManyRequests); !strings.HasPrefix(refused.Detail, "The tenant") {
		t.Errorf("%+v", refused)
	}
}

// TestOneFileHasAllProjects of the caller, and no secret.
func TestOneFileHasAllProjects(t *testing.T) {
	for scopes, c := range map[string]struct {
		query string
		want  []string
	}{
		"admin":             {"", []string{"acme/blog admin", "acme/shop admin", "beta/shop admin"}},
		"tenant:acme:admin": {"?role=edit", []string{"acme/blog edit", "acme/shop edit"}},
		"tenant:acme:view":  {"", []string{"acme/blog view", "acme/shop view"}},
		"tenant:beta:edit":  {"?role=admin", nil},
		"project:acme/shop:edit project:acme/blog:deploy": {"", []string{"acme/blog view", "acme/shop edit"}},
		"tenant:acme:edit": {"?tenant=beta", nil},
	} {
		p := newPlane(t)
		answer := operated.Read[KubeconfigFile](t, p.Do(p.Token("caller", strings.Fields(scopes)...), "GET", "/v1/kubeconfig"+c.query, ""), http.StatusOK)
		file := fileOf(t, answer.File)
		var got []string
		for i, named := range file.Contexts {
			user := file.AuthInfos[i]
			exec := user.AuthInfo.Exec
			if user.Name != named.Name+"/"+exec.Args[3]+"@k.example.com:6443" || named.Context.AuthInfo != user.Name || answer.Contexts[i] != named.Name || exec.Command != "kubeop" ||
				exec.InteractiveMode != v1.NeverExecInteractiveMode || exec.APIVersion != "client.authentication.k8s.io/v1" || named.Context.Cluster != "kubeop@k.example.com:6443" ||
				named.Context.Namespace != "kubeop-"+strings.Replace(named.Name, "/", "-", 1) {
				t.Errorf("%+v %+v", named, user)
			}
			got = append(got, fmt.Sprint(exec.Args[1], " ", exec.Args[3]))
			if diff := cmp.Diff([]string{"token", named.Name, "--role", exec.Args[3], "--server", "https://kubeop.example.com"}, exec.Args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" || len(p.secrets) > 0 || len(p.requested) > 0 {
			t.Errorf("%s: (-want +got):\n%s", scopes, diff)
		}
	}
}
