package kubeconfigs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

type kubeconfigInput struct {
	ProjectInput
	Body struct {
		Name string `json:"name,omitempty" maxLength:"100" doc:"What it is for."`
		Role string `json:"role" enum:"view,edit,admin" doc:"What it may in the project, as the owners of a tenant with this role."`
		TTL  string `json:"ttl,omitempty" maxLength:"20" doc:"How long its token is valid, from 10m to 24h. Default: 1h. The answer has when it ends, which may be earlier." example:"8h"`
	}
}

// KubeconfigToken is the answer with a token.
type KubeconfigToken struct {
	Kubeconfig
	Token string `json:"token" doc:"The token. It is shown only here, and the manager does not keep it."`
	File  string `json:"kubeconfig" doc:"A kubeconfig with this token, in YAML."`
}

// lifeOf reads how long a token is wanted, for a caller whose own token ends at a time. Who has a token by itself gets none that outlives it; people sign in again.
func lifeOf(caller auth.Caller, now time.Time, text string) (time.Duration, error) {
	life := defaultLife
	if text != "" {
		wanted, err := time.ParseDuration(text)
		if err != nil || wanted < minLife || wanted > maxLife {
			return 0, problem.New(problem.Invalid, "The life is invalid.", problem.Fault{Location: "body.ttl", Message: "may be a duration from 10m to 24h, such as 90m"})
		}
		life = wanted.Truncate(time.Second)
	}
	if isPerson(caller) {
		return life, nil
	}
	left := caller.Token.Expires.Sub(now).Truncate(time.Second)
	if left < minLife {
		return 0, problem.New(problem.Conflict, "The token of the caller ends within 10 minutes, and no token for the cluster may be valid for longer than it, or for less.")
	}
	return min(life, left), nil
}

// allowed refuses tokens to who may not have one, and to all while people get none. It returns the tenant.
func (o *Operations) allowed(ctx context.Context, tenant, project, role string) (store.TenantRef, error) {
	if err := o.Project(ctx, tenant, project); err != nil {
		return store.TenantRef{}, err
	}
	caller := auth.Of(ctx)
	if !mayAs(caller.Grant, role, tenant, project) {
		return store.TenantRef{}, problem.New(problem.Forbidden, fmt.Sprintf("The caller may not act with the role %s in the project.", role))
	}
	if o.Cluster == nil {
		return store.TenantRef{}, notGiven()
	}
	of, err := o.Tenant(ctx, tenant)
	// A token names the tenant, which may be another one by now. The rights of people are those of their tenant.
	if err == nil && !isPerson(caller) && !ofPlatform(caller) && caller.Token.Created.Before(of.Created) {
		err = problem.New(problem.Forbidden, "The token of the caller is older than the tenant, so it may be that of an earlier tenant of the name. An administrator of the tenant makes another one.")
	}
	return of, err
}

// take counts a token of a caller, and of the tenant. Each is an event, which stays.
func (o *Operations) take(caller, tenant string) error {
	wait, ok := o.Tokens.OfCaller.Take(tenant + "/" + caller)
	who, most := "The caller", maxTokensOfCaller
	if ok {
		wait, ok = o.Tokens.OfTenant.Take(tenant)
		who, most = "The tenant", maxTokens
	}
	if ok {
		return nil
	}
	return problem.New(problem.TooManyRequests, fmt.Sprintf("%s got %d tokens in a day, and gets no more. The header Retry-After says after how many seconds the next one is possible.", who, most)).After(wait)
}

func (o *Operations) create(ctx context.Context, in *kubeconfigInput) (*answer[KubeconfigToken], error) {
	caller, now := auth.Of(ctx), store.Time(o.Now())
	tenant, err := o.allowed(ctx, in.Tenant, in.Project, in.Body.Role)
	if err != nil {
		return nil, err
	}
	life, err := lifeOf(caller, now, in.Body.TTL)
	if err == nil {
		err = o.take(caller.Token.ID, in.Tenant)
	}
	if err != nil {
		return nil, err
	}
	k := store.Kubeconfig{
		ID: uuid.NewString(), Name: in.Body.Name, Tenant: in.Tenant, TenantUID: tenant.UID, Project: in.Project, Role: in.Body.Role, Life: life, Created: now, CreatedBy: caller.Token.ID,
		Groups: caller.Groups(), Expires: now.Add(life),
	}
	// It is kept first, so that nothing is left in the cluster that nobody knows of.
	err = o.Store.BeginKubeconfig(ctx, k)
	if errors.Is(err, store.ErrTooManyKubeconfigs) {
		return nil, problem.New(problem.Conflict, fmt.Sprintf("There may be %d kubeconfigs of a caller in a tenant, %d of a project and %d of a tenant, and one of these is reached: the caller deletes one, or an administrator of the tenant.",
			store.MaxKubeconfigsOfCaller, store.MaxKubeconfigsOfProject, store.MaxKubeconfigs))
	}
	if err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	if k.SecretUID, err = o.makeSecret(ctx, k); err != nil {
		o.undo(ctx, k, !refused(err))
		return nil, refusedBy(ctx, err)
	}
	made, err := o.issue(ctx, k, "createKubeconfig")
	if err != nil {
		o.undo(ctx, k, true)
	}
	return made, err
}

func (o *Operations) renew(ctx context.Context, in *OneInput) (*answer[KubeconfigToken], error) {
	caller, now := auth.Of(ctx), store.Time(o.Now())
	k, err := o.find(ctx, in)
	if err != nil {
		return nil, err
	}
	if k.CreatedBy != caller.Token.ID || k.SecretUID == "" || !now.Before(k.Expires) {
		return nil, problem.New(problem.NotFound, "")
	}
	if _, err := o.allowed(ctx, k.Tenant, k.Project, k.Role); err != nil {
		return nil, err
	}
	k.Groups = caller.Groups()
	if k.Life, err = lifeOf(caller, now, k.Life.String()); err == nil {
		err = o.take(caller.Token.ID, k.Tenant)
	}
	if err != nil {
		return nil, err
	}
	return o.issue(ctx, k, "renewKubeconfig")
}

// issue requests a token, and records it before anybody has it.
func (o *Operations) issue(ctx context.Context, k store.Kubeconfig, action string) (*answer[KubeconfigToken], error) {
	seconds := int64(k.Life.Seconds())
	made, err := o.Cluster.ServiceAccounts(namespaceOf(k)).CreateToken(ctx, accountPrefix+k.Role, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secretPrefix + k.ID, UID: types.UID(k.SecretUID)},
	}}, metav1.CreateOptions{})
	if isGone(err) { // Whoever deleted the Secret revoked the kubeconfig.
		o.undo(ctx, k, true)
		return nil, problem.New(problem.NotFound, "")
	}
	if err != nil {
		return nil, refusedBy(ctx, fmt.Errorf("requesting a token for a kubeconfig: %w", err))
	}
	k.Expires = made.Status.ExpirationTimestamp.UTC()
	if err := o.Store.GrantToken(ctx, k, o.event(ctx, action, k, tokenID(made.Status.Token))); err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	file, err := o.Server.withToken(k, made.Status.Token)
	if err != nil {
		return nil, err
	}
	return &answer[KubeconfigToken]{KubeconfigToken{answerOf(k), made.Status.Token, file}}, nil
}

// tokenID returns the ID of a token of the API server, "" if it has none. The audit log of Kubernetes has it as authentication.kubernetes.io/credential-id.
func tokenID(token string) string {
	var claims struct {
		ID string `json:"jti"`
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.ID
}

// undo removes what was made for a kubeconfig that nobody got, or that was revoked. inCluster says whether there may be a Secret. What it leaves, the sweep removes.
func (o *Operations) undo(ctx context.Context, k store.Kubeconfig, inCluster bool) {
	ctx, cancel := store.Detached(ctx)
	defer cancel()
	remove := o.forget
	if !inCluster {
		remove = func(ctx context.Context, k store.Kubeconfig) error {
			return o.Store.DeleteKubeconfig(ctx, k.ID, store.Event{})
		}
	}
	if err := remove(ctx, k); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Removing a kubeconfig that nobody has")
	}
}

// refused reports whether the API server did not do what was requested, and will not.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err)
}

// refusedBy returns what is answered when the API server refused something. The reason is for the log.
func refusedBy(ctx context.Context, err error) error {
	logr.FromContextOrDiscard(ctx).Error(err, "Giving a kubeconfig")
	if refused(err) {
		return problem.New(problem.Conflict, "The project has no accounts for kubeconfigs, or no room for a Secret more. The condition Ready of the Project, and the log of the manager, say why.")
	}
	return problem.New(problem.Unavailable, "The API server does not answer.").After(5 * time.Second)
}
