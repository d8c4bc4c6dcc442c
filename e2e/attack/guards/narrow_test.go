//go:build e2e

package guards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
	"github.com/kubeop/kubeop/e2e/tenants"
)

// narrow is an attacker, too, with rules that would refuse the controls of the other one, or change what refuses its attempts.
const narrow = "magpie"

const narrowPolicy = `apiVersion: paas.kubeop.io/v1alpha1
kind: Policy
metadata: {name: narrow}
spec:
  images: {verify: [{images: [%[1]s], keys: [%[2]q]}]}
  classes: {priority: [low]}
  quota: {max: {pods: "60", requests.cpu: "2000"}}
  nodes: {userNamespaces: true}
  limits: {max: {cpu: "1", memory: 1Gi}, min: {cpu: 10m}, ratio: {memory: "2"}, claims: {max: 2Gi, min: 512Mi}}
  kinds: {allow: [Pod, PodTemplate, ReplicationController, PersistentVolumeClaim, ConfigMap, ServiceAccount, "*.apps", "*.batch", "*.rbac.authorization.k8s.io", Ingress.networking.k8s.io, HTTPRoute.gateway.networking.k8s.io, Gateway.gateway.networking.k8s.io]}
  sources: {git: {allow: [%[3]q]}, helm: {allow: [charts.magpie.example]}, oci: {allow: [%[1]s]}}
`

// narrowTenant declares it, with an account as the other attacker has one, and with a Registry without TLS, from which kubeop reads the
// signatures of images.
func narrowTenant(ctx context.Context, key string) error {
	if err := platform.SetSecret(ctx, narrow+"-pull", map[string]string{"username": "robot", "password": "jasper"}); err != nil {
		return err
	}
	registry := platform.Cluster.Registry.Host
	if err := platform.Declare(ctx, map[string]string{
		"policies/narrow.yaml":  fmt.Sprintf(narrowPolicy, registry+"/"+signedPath, key, strings.TrimSuffix(folders.OperatorURL, ".git")),
		"registries/local.yaml": "apiVersion: paas.kubeop.io/v1alpha1\nkind: Registry\nmetadata: {name: local}\nspec: {host: '" + registry + "', insecure: true, secretRef: {name: " + narrow + "-pull}, tenants: [" + narrow + "]}\n",
	}); err != nil {
		return err
	}
	namespace := v1alpha1.ProjectNamespace(narrow, "shop")
	own, err := platform.Tenant(ctx, narrow, "policies: [narrow]\npriorityClasses: [high, low]\ndomains: [magpie.example]\nmaxTerminationGracePeriod: 40s\n"+
		"csiDrivers: [secrets.csi.example]\ningressAnnotations: [nginx.ingress.kubernetes.io/auth-url]\nbudget: {requests.cpu: \"500\"}\nquota: {services.loadbalancers: \"5\"}\nlimits: {apps: 1200}\n"+owners(narrow), map[string]string{
		"projects/shop/project.yaml": project, "projects/shop/apps/bot/app.yaml": fmt.Sprintf(rights, namespace, hosted(host, narrow)),
	})
	repositories[narrow] = own
	return errors.Join(err, platform.AppReady(ctx, namespace, "bot"))
}

const below = "which is not below the allowed domains"

// limited is a guard about the resources of a container: the API server judges pods, and kubeop judges templates.
func limited(name, value, said, git string) guard {
	return guard{tenant: narrow, name: name, control: "pod", field: "/containers/0/resources", value: value, policy: said, git: git, skip: noKinds + noUpdate}
}

// ofNarrow are the guards that only this tenant tries.
var ofNarrow = []guard{
	{tenant: narrow, name: "users of the node", control: "pod", field: "/hostUsers", value: "true", policy: nodes, words: "they need hostUsers: false"},
	{tenant: narrow, name: "a priority that only the Tenant has", control: "pod", field: "/priorityClassName", value: "high", policy: classes, words: "priorityClassName high"},
	{tenant: narrow, name: "a second too long to end", control: "pod", field: "/terminationGracePeriodSeconds", value: "41", policy: "kubeop-grace-period", words: "terminationGracePeriodSeconds 41, of which 40 are allowed"},
	{tenant: narrow, name: "a driver like an allowed one", control: "pod", field: "/volumes", value: "[{name: v, csi: {driver: secrets.csi.example.evil.org}}]", policy: "kubeop-volumes", words: "of the CSI driver secrets.csi.example.evil.org", skip: oneInGit},
	{tenant: narrow, name: "an allowed annotation in capitals", control: "Ingress", field: "/metadata/annotations/nginx.ingress.kubernetes.io~1Auth-URL", value: "http://x.example", policy: "kubeop-ingress-annotation", words: "leads the Ingress controller", skip: oneInGit},

	limited("a large processor", "{limits: {cpu: '2'}}", "maximum cpu usage per Container is 1", "with limits.cpu 2; at most 1 is allowed"),
	limited("a large processor in thousandths", "{limits: {cpu: 2000m}}", "maximum cpu usage per Container is 1", "with limits.cpu 2; at most 1 is allowed"),
	limited("much memory", "{requests: {memory: 1Gi}, limits: {memory: 2Gi}}", "maximum memory usage per Container is 1Gi", "with limits.memory 2Gi; at most 1Gi is allowed"),
	limited("a large request", "{requests: {cpu: '2'}}", "must be less than or equal to cpu limit", "with requests.cpu 2; at most 1 is allowed"),
	limited("a small request", "{requests: {cpu: 1m}}", "minimum cpu usage per Container is 10m", "with requests.cpu 1m; at least 10m is required"),
	limited("a limit far above the request", "{requests: {memory: 64Mi}, limits: {memory: 512Mi}}", "memory max limit to request ratio per Container is 2", "a limit may be at most 2 times the request"),
	{tenant: narrow, name: "a large init container", control: "pod", field: "/initContainers", value: "[{name: i, image: a, resources: {limits: {cpu: '2'}}, " + secure + "}]",
		policy: "maximum cpu usage per Container is 1", git: "has the container i with limits.cpu 2", skip: noKinds + noUpdate},
	{tenant: narrow, name: "a large sidecar", control: "pod", field: "/initContainers", value: "[{name: i, image: a, restartPolicy: Always, resources: {limits: {cpu: '2'}}, " + secure + "}]",
		policy: "maximum cpu usage per Container is 1", git: "has the container i with limits.cpu 2", skip: noKinds + noUpdate + oneInGit},
	{tenant: narrow, name: "a large claim", control: "Claim", field: "/spec/resources/requests/storage", value: "3Gi", policy: "maximum storage usage per PersistentVolumeClaim is 2Gi", git: "has a claim of 3Gi; at most 2Gi is allowed", skip: noUpdate},
	{tenant: narrow, name: "a small claim", control: "Claim", field: "/spec/resources/requests/storage", value: "1Mi", policy: "minimum storage usage per PersistentVolumeClaim is 512Mi", git: "has a claim of 1Mi; at least 512Mi is required", skip: noUpdate},
	{tenant: narrow, name: "a large claim of a template", control: "StatefulSet", field: "/spec/volumeClaimTemplates/0/spec/resources/requests/storage", value: "3Gi", words: "has a claim of 3Gi; at most 2Gi is allowed", skip: noDirect},
	{tenant: narrow, name: "a large claim of a pod", control: "pod", field: "/volumes", value: templated("", strings.Replace(claim, "1Gi", "3Gi", 1)), words: "has a claim of 3Gi; at most 2Gi is allowed", skip: noDirect},

	{tenant: narrow, name: "a host of another domain", control: "Ingress", field: "/spec/rules/0/host", value: victims, policy: hostnames, words: below},
	{tenant: narrow, name: "a host of a domain like ours", control: "Ingress", field: "/spec/rules/0/host", value: "www.xmagpie.example", policy: hostnames, words: below},
	{tenant: narrow, name: "our domain below another", control: "Ingress", field: "/spec/rules/0/host", value: "magpie.example.evil.org", policy: hostnames, words: below},
	{tenant: narrow, name: "all domains of a level", control: "Ingress", field: "/spec/rules/0/host", value: "'*.example'", policy: hostnames, words: below},
	{tenant: narrow, name: "every domain", control: "Ingress", field: "/spec/defaultBackend", value: "{service: {name: a, port: {number: 80}}}", policy: hostnames, words: "serves every host name"},
	{tenant: narrow, name: "a certificate of another domain", control: "Ingress", field: "/spec/tls", value: "[{hosts: [" + victims + "], secretName: a}]", policy: hostnames, words: below},
	{tenant: narrow, name: "a route of another domain", control: "HTTPRoute", field: "/spec/hostnames/0", value: victims, policy: hostnames, words: below},
	{tenant: narrow, name: "a route of a Unicode twin of our domain", control: "HTTPRoute", field: "/spec/hostnames/0", value: "www.m\u0430gpie.example", policy: hostnames, words: below}, // A Cyrillic letter.
	{tenant: narrow, name: "a route of another domain in capitals with a dot", control: "HTTPRoute", field: "/spec/hostnames/0", value: "WWW.Mine.Example.", policy: hostnames, words: below, skip: oneInGit},
	{tenant: narrow, name: "a listener of another domain", control: "Gateway", field: "/spec/listeners/0/hostname", value: victims, policy: hostnames, words: below},

	{tenant: narrow, name: "a kind that is not allowed", control: "ConfigMap", object: controls["Service"], policy: kinds, words: "is of kind Service, which is not among the allowed ones"},
	{tenant: narrow, name: "a Secret that is not allowed", control: "ConfigMap", object: "{apiVersion: v1, kind: Secret, " + metadata + ", stringData: {a: b}}", policy: kinds, words: "is of kind Secret, which is not among the allowed ones"},
	{tenant: narrow, name: "another kind of an allowed group", control: "ConfigMap", object: hosted(controls["GRPCRoute"], narrow), policy: kinds, words: "is of kind GRPCRoute.gateway.networking.k8s.io, which is not among the allowed ones"},
	{tenant: narrow, name: "a kind of a group that is not allowed", control: "ConfigMap", object: controls["Budget"], policy: kinds, words: "is of kind PodDisruptionBudget.policy, which is not among the allowed ones"},
}

// TestNoUnsignedImageIsDelivered: in no form, neither if nobody signed the image, nor if others did, nor if it has the signature of another
// one. One that is signed is.
func TestNoUnsignedImageIsDelivered(t *testing.T) {
	before := versions(t)
	others, err := stage.NewSigner()
	must(t, err)
	namespace := v1alpha1.ProjectNamespace(narrow, "shop")
	files, words := map[string]string{}, map[string]string{
		"us": "", "nobody": "it has no signature in its registry", "others": "none of its 1 signatures is by one of the keys of the policy", "twin": "it has no signature in its registry",
		"us, by its tag": "which has to be signed, without a digest", "nobody, at the port in another spelling": "it has no signature in its registry",
	}
	digests := map[string]string{}
	for _, by := range []string{"us", "nobody", "others", "twin"} {
		digests[by] = made(t, "Image", "image-"+by)
	}
	must(t, platform.Sign(t.Context(), signedPath+"/image-us", digests["us"], signer))
	must(t, platform.Sign(t.Context(), signedPath+"/image-others", digests["others"], others))
	must(t, platform.Sign(t.Context(), signedPath+"/image-twin", digests["us"], signer)) // The signature of another one.
	named := func(by string) string {
		image := platform.Cluster.Registry.Host + "/" + signedPath + "/image-"
		switch by {
		case "us, by its tag":
			return image + "us:1.0.0"
		case "nobody, at the port in another spelling":
			return strings.Replace(image, ":", ":0", 1) + "nobody@" + digests["nobody"]
		}
		return image + by + "@" + digests[by]
	}
	var all []pushed
	var signed []string
	number := 0
	for _, by := range []string{"us", "nobody", "others", "twin", "us, by its tag", "nobody, at the port in another spelling"} {
		for _, c := range []try{
			{guard: guard{field: "/containers/0/image", value: named(by)}},
			{guard: guard{field: "/initContainers", value: "[{name: i, image: '" + named(by) + "', " + secure + "}]", skip: oneInGit}},
			{guard: guard{field: "/volumes", value: "[{name: v, image: {reference: '" + named(by) + "'}}]", skip: oneInGit}},
		} {
			c.tenant, c.kind, c.at = narrow, "Deployment", templates["Deployment"]+c.field
			for _, form := range gitForms {
				if !form.fits(c) {
					continue
				}
				number++
				name := fmt.Sprintf("signed-%d", number)
				spec, beside := form.write(t, c, name)
				appFiles(files, "shop", name, spec, beside)
				if by != "us" {
					all = append(all, pushed{app: namespace + "/" + name, about: "in Git: an image signed by " + by + ", " + c.field + ", " + form.name, words: words[by], bad: c.bad(t, name)})
				} else if form.name != inHooks {
					signed = append(signed, name)
				}
			}
		}
	}
	must(t, folders.Push(t.Context(), "Change"))
	must(t, tenants.Push(t.Context(), repositories[narrow], files))
	nothingIsDelivered(t, all)
	for _, name := range signed {
		must(t, platform.AppReady(t.Context(), namespace, name))
	}
	onlyHooksOf(t, namespace, named("us"))
	unchanged(t, before)
}

// onlyHooksOf waits until the Job of a hook has an image, and checks that no Job has one that has to be signed and is not.
func onlyHooksOf(t *testing.T, namespace, image string) {
	t.Helper()
	jobs := &batchv1.JobList{}
	of := func(job batchv1.Job) string { return job.Spec.Template.Spec.Containers[0].Image }
	soon(t, "a hook has the signed image", func(ctx context.Context) error {
		if err := platform.Client.List(ctx, jobs, client.InNamespace(namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(jobs.Items, func(job batchv1.Job) bool { return of(job) == image }) {
			return errors.New("none has")
		}
		return nil
	})
	for _, job := range jobs.Items {
		if strings.Contains(of(job), signedPath+"/") && of(job) != image {
			t.Errorf("ESCAPE: Job %s has the image %s", job.Name, of(job))
		}
	}
}

// TestNoPodIsMadeOfARefusedOne: of templates that the API server accepts from an account, because its rule is about pods, Kubernetes'
// controllers make no pod. kubeop refuses them in Git.
func TestNoPodIsMadeOfARefusedOne(t *testing.T) {
	before := versions(t)
	type made struct {
		writer
		what string
	}
	var all []made
	for i, g := range guards {
		if g.control != "pod" || !strings.Contains(g.skip, noKinds) || strings.HasPrefix(g.name, "a volume of type ") || !g.chosen() {
			continue // Templates with such volumes are refused.
		}
		for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet", "Job"} {
			name := fmt.Sprintf("m%d", i)
			c := try{g, kind, templates[kind] + g.field}
			o := c.bad(t, name)
			switch kind {
			case "Job":
				set(t, o.Object, []string{"spec", "suspend"}, false)
			case "StatefulSet":
				set(t, o.Object, []string{"spec", "volumeClaimTemplates"}, []any{}) // Claims would come first.
				fallthrough
			default:
				set(t, o.Object, []string{"spec", "replicas"}, int64(1))
			}
			must(t, as(t, g.account("bot")).Create(t.Context(), o))
			defer func() {
				must(t, as(t, g.account("bot")).Delete(context.WithoutCancel(t.Context()), o, client.PropagationPolicy("Background")))
			}()
			maker := kind + "/" + name
			if kind == "Deployment" {
				maker = "ReplicaSet/" + name + "-"
			}
			all = append(all, made{writer{T: t, try: c, about: "a pod of a " + kind + ": " + g.name, name: name}, maker})
		}
	}
	later := guard{name: "a class that is younger than the template", control: "Deployment", field: "/spec/template/spec/priorityClassName", value: "later", policy: "kubeop-priority-class", words: "priorityClassName later"}.tries("")[0]
	o := later.bad(t, "later")
	set(t, o.Object, []string{"spec", "replicas"}, int64(1))
	must(t, as(t, bot).Create(t.Context(), o))
	defer func() { must(t, as(t, bot).Delete(context.WithoutCancel(t.Context()), o)) }()
	must(t, platform.Client.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "later"}, Value: 1000}))
	all = append(all, made{writer{T: t, try: later, about: "a pod of a Deployment: " + later.name}, "ReplicaSet/later-"})
	for _, m := range all {
		soon(t, m.about+" is refused", func(ctx context.Context) error {
			said, err := failures(ctx, m.namespace(), m.what)
			if err != nil {
				return err
			}
			tried.add(m.about, said)
			return m.judge(errors.New(said))
		})
	}
	pods := &corev1.PodList{}
	must(t, platform.Client.List(t.Context(), pods))
	for _, pod := range pods.Items {
		if owner := pod.OwnerReferences; len(owner) > 0 && slices.ContainsFunc(all, func(m made) bool {
			return m.namespace() == pod.Namespace && strings.HasPrefix(owner[0].Kind+"/"+owner[0].Name, m.what)
		}) {
			t.Errorf("ESCAPE: pod %s/%s of %s/%s exists", pod.Namespace, pod.Name, owner[0].Kind, owner[0].Name)
		}
	}
	unchanged(t, before)
}

// failures are the messages of a controller that could not make a pod.
func failures(ctx context.Context, namespace, what string) (string, error) {
	list := &corev1.EventList{}
	if err := platform.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	var said []string
	for _, e := range list.Items {
		if of := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name; e.Reason == "FailedCreate" && (of == what || strings.HasSuffix(what, "-") && strings.HasPrefix(of, what)) {
			said = append(said, e.Message)
		}
	}
	return strings.Join(said, "\n"), nil
}

// TestNoPodIsResizedAboveTheLimits: by the subresource resize, which no role of kubeop has. The control is a resize within them.
func TestNoPodIsResizedAboveTheLimits(t *testing.T) {
	before := versions(t)
	namespace := v1alpha1.ProjectNamespace(narrow, "shop")
	pod := objectIn(t, namespace, controls["Pod"], "sized")
	set(t, pod.Object, strings.Split("spec/containers/0/resources", "/"), parsed(t, "{requests: {cpu: 100m, memory: 128Mi}, limits: {cpu: 500m, memory: 256Mi}}"))
	place(t, pod)
	resize := func(user, resources string) error {
		patch := fmt.Appendf(nil, `{"spec":{"containers":[{"name":"a","resources":%s}]}}`, resources)
		return as(t, user).SubResource("resize").Patch(t.Context(), pod.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", patch))
	}
	giant := giantOf(t, namespace)
	must(t, resize(giant, `{"limits":{"cpu":"600m"}}`))
	for resources, want := range map[string]string{
		`{"limits":{"cpu":"2"}}`:                                  "maximum cpu usage per Container is 1",
		`{"requests":{"cpu":"2"},"limits":{"cpu":"2"}}`:           "maximum cpu usage per Container is 1",
		`{"requests":{"cpu":"1m"}}`:                               "minimum cpu usage per Container is 10m",
		`{"limits":{"memory":"1Gi"}}`:                             "memory max limit to request ratio per Container is 2",
		`{"requests":{"memory":"2Gi"},"limits":{"memory":"2Gi"}}`: "maximum memory usage per Container is 1Gi",
	} {
		for _, user := range []string{giant, guard{tenant: narrow}.account("bot"), narrow + "-view", narrow + "-edit", narrow + "-admin"} {
			err := resize(user, resources)
			tried.add("a pod that is resized to "+resources+", by "+user, fmt.Sprint(err))
			if err == nil || !strings.Contains(err.Error(), want) && (user == giant || !strings.Contains(err.Error(), forbidden)) {
				t.Errorf("ESCAPE: a pod that is resized to %s, by %s: %v", resources, user, err)
			}
		}
	}
	unchanged(t, before)
}
