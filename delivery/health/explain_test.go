package health

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var update = flag.Bool("update", false, "write the golden file anew")

// situation is an object that is not well, and what there is beside it.
type situation struct {
	of     client.Object
	beside []client.Object
	logs   map[string]string
}

const quotaRefusal = `is forbidden: exceeded quota: compute, requested: cpu=1, used: cpu=4, limited: cpu=4`

func situations() map[string]situation {
	all := map[string]situation{}
	for _, some := range []map[string]situation{crashes(), blocks(), starts(), workloads(), others()} {
		maps.Copy(all, some)
	}
	return all
}

func crashes() map[string]situation {
	logged := map[string]string{
		"web-1/main/previous": "starting\r\n2026/03/01 12:10:01 \x1b[31mcannot reach\tdb:5432\x1b[0m\n\n",
		"web-1/main":          "the present run\n",
	}
	first := containers(container(ends(2, "Error", ""), noState))
	again := containers(container(runs, ends(2, "Error", "")))
	killed := pod(looping(137, "Error", ""))
	between := pod(containers(container(runs, ends(137, "Error", ""))))
	liveness := func(p *corev1.Pod) []client.Object {
		return []client.Object{p, event(p, 5, "Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500"),
			event(p, 6, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")}
	}
	long := container(runs, ends(255, "Unknown", ""))
	long.LastTerminationState.Terminated.FinishedAt = at(80)
	tenMinutes := container(runs, ends(255, "Unknown", ""))
	tenMinutes.LastTerminationState.Terminated.FinishedAt = at(20)
	initial := corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "migrate", State: waits("CrashLoopBackOff", ""), LastTerminationState: ends(1, "Error", "")}},
		ContainerStatuses:     []corev1.ContainerStatus{container(waits("PodInitializing", ""), noState)},
	}
	proxy := corev1.ContainerStatus{Name: "proxy", Ready: true, State: runs}
	return map[string]situation{
		"crash: waiting for the next try":          {deployment(), []client.Object{pod(looping(2, "Error", ""))}, logged},
		"crash: just ended":                        {deployment(), []client.Object{pod(first)}, map[string]string{"web-1/main": logged["web-1/main/previous"]}},
		"crash: tried again":                       {deployment(), []client.Object{pod(again)}, logged},
		"crash: its log cannot be read":            {deployment(), []client.Object{pod(looping(2, "Error", ""))}, nil},
		"crash: with a termination message":        {deployment(), []client.Object{pod(looping(2, "Error", "reading /etc/web.yaml\nno such file\n"))}, logged},
		"crash: out of memory":                     {deployment(), []client.Object{pod(looping(137, "OOMKilled", ""))}, logged},
		"crash: the command is not there":          {deployment(), []client.Object{pod(looping(128, "StartError", `exec: "serve": executable file not found in $PATH`))}, logged},
		"crash: with a long log":                   {deployment(), []client.Object{pod(looping(2, "Error", ""))}, map[string]string{"web-1/main/previous": "not the first\n" + strings.Repeat("more\n", 18) + "no such file\n"}},
		"crash: ends well but should run":          {deployment(), []client.Object{pod(looping(0, "Completed", ""))}, map[string]string{"web-1/main/previous": "usage: web serve\n"}},
		"crash: killed for its liveness probe":     {deployment(), liveness(killed), logged},
		"crash: killed for it, and tried again":    {deployment(), liveness(between), logged},
		"crash: killed, the probe failed earlier":  {deployment(), []client.Object{killed, until(event(killed, 5, "Unhealthy", "Liveness probe failed: before"), 9)}, logged},
		"crash: the older of two pods":             {statefulSet(2), []client.Object{pod(looping(2, "Error", "the younger"), named("web-0", 5)), pod(looping(2, "Error", "the older"), named("web-1", 4))}, nil},
		"crash: the older, by name the first":      {statefulSet(2), []client.Object{pod(looping(2, "Error", "the older"), named("web-0", 4)), pod(looping(2, "Error", "the younger"), named("web-1", 5))}, nil},
		"crash: no reason":                         {deployment(), []client.Object{pod(looping(2, "", ""))}, nil},
		"crash: killed, one event of events.k8s":   {deployment(), []client.Object{killed, once(event(killed, 15, "Unhealthy", "Liveness probe failed: one event"))}, logged},
		"crash: killed, an event without a time":   {deployment(), []client.Object{killed, untimed(event(killed, 15, "Unhealthy", "Liveness probe failed: without a time"))}, logged},
		"crash: the first of two as old":           {statefulSet(2), []client.Object{pod(looping(2, "Error", "the second"), named("web-1", 4)), pod(looping(2, "Error", "the first"), named("web-0", 4))}, nil},
		"crash: killed by somebody else":           {deployment(), []client.Object{killed}, logged},
		"crash: an init container":                 {deployment(), []client.Object{pod(initial)}, map[string]string{"web-1/migrate/previous": "relation users exists\n"}},
		"crash: one of two containers":             {deployment(), []client.Object{pod(containers(container(waits("CrashLoopBackOff", ""), ends(1, "Error", "")), proxy))}, logged},
		"crash: after a run of ten minutes":        {deployment(), []client.Object{pod(containers(tenMinutes))}, logged},
		"crash: killed, a series of events.k8s":    {deployment(), []client.Object{killed, series(event(killed, 5, "Unhealthy", "Liveness probe failed: in a series"))}, logged},
		"crash: long ago, and not ready today":     {deployment(), []client.Object{pod(containers(long))}, logged},
		"crash: a log of one endless line":         {deployment(), []client.Object{pod(looping(1, "Error", ""))}, map[string]string{"web-1/main/previous": strings.Repeat("long ", 1000)}},
		"crash: a pod of a StatefulSet":            {statefulSet(2), []client.Object{pod(looping(2, "Error", ""))}, logged},
		"crash: a pod of a DaemonSet":              {daemonSet(2), []client.Object{pod(looping(2, "Error", ""))}, logged},
		"crash: an unhealthy pod before a crasher": {deployment(), []client.Object{pod(looping(2, "Error", ""), named("web-1", 5)), pod(containers(container(runs, noState)), named("web-0", 1))}, logged},
	}
}

func blocks() map[string]situation {
	const cause = `rpc error: code = NotFound desc = failed to pull and unpack image "r.example/web:v1": not found`
	old := pod(waitingFor("ImagePullBackOff", `Back-off pulling image "r.example/web:v1"`))
	return map[string]situation{
		"image: not found":                         {deployment(), []client.Object{pod(waitingFor("ErrImagePull", cause))}, nil},
		"image: a reason of its own":               {deployment(), []client.Object{pod(waitingFor("ErrImagePull", "the registry says desc = closed"))}, nil},
		"image: not found, waiting":                {deployment(), []client.Object{pod(waitingFor("ImagePullBackOff", `Back-off pulling image "r.example/web:v1": ErrImagePull: `+cause))}, nil},
		"image: not found, waiting before 1.32":    {deployment(), []client.Object{old, event(old, 3, "Failed", `Failed to pull image "r.example/web:v1": `+cause), event(old, 4, "Failed", "Error: ErrImagePull")}, nil},
		"image: not found, and the event has gone": {deployment(), []client.Object{old}, nil},
		"image: an RPC error of another form":      {deployment(), []client.Object{pod(waitingFor("ErrImagePull", "rpc error: the connection is closed"))}, nil},
		"image: invalid":                           {deployment(), []client.Object{pod(waitingFor("InvalidImageName", `couldn't parse image name "R:v1": invalid reference format`))}, nil},
		"configuration: a Secret is missing":       {deployment(), []client.Object{pod(waitingFor("CreateContainerConfigError", `secret "db" not found`))}, nil},
		"container: the runtime refuses":           {deployment(), []client.Object{pod(waitingFor("CreateContainerError", "device busy"))}, nil},
		"container: restarted before it ever ran":  {deployment(), []client.Object{pod(waitingFor("CrashLoopBackOff", "back-off 10s"))}, nil},
		"image: of a pod of a Job":                 {job(), []client.Object{pod(waitingFor("ErrImagePull", cause))}, nil},
	}
}

func starts() map[string]situation {
	creating := pod(waitingFor("ContainerCreating", ""))
	unready := pod(containers(container(runs, noState)))
	initializing := corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "mesh", State: runs, Ready: true}, {Name: "wait-for-db", State: runs}},
		ContainerStatuses:     []corev1.ContainerStatus{container(waits("PodInitializing", ""), noState)},
	}
	sidecar := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "mesh", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}, {Name: "wait-for-db"}}
	}
	second := corev1.ContainerStatus{Name: "second", State: waits("ContainerCreating", "")}
	afterInit := pod(containers(second))
	afterInit.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "migrate", State: ends(0, "Completed", "")}}
	ready := container(runs, noState)
	ready.Ready = true
	besideOne := pod(containers(ready, second))
	onceMore := pod(containers(container(waits("ContainerCreating", ""), ends(0, "Completed", ""))))
	named2 := event(unready, 2, "Unhealthy", "Readiness probe failed: the last by name")
	named2.Name = "web-1.z"
	recovered := container(runs, ends(1, "Error", "a crash of before"))
	recovered.Ready = true
	slow := corev1.ContainerStatus{Name: "slow", State: runs}
	beside := pod(containers(recovered, slow))
	beside.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	unscheduled := refusedByScheduler("1 Insufficient cpu")
	unscheduled.Conditions = append([]corev1.PodCondition{{Type: "Sponsored", Status: corev1.ConditionFalse, Message: "nobody pays"}}, unscheduled.Conditions...)
	const cni = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to set up sandbox " +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef: no addresses left"
	return map[string]situation{
		"scheduling: too little cpu":        {deployment(), []client.Object{pod(refusedByScheduler("0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found."))}, nil},
		"scheduling: beside another reason": {deployment(), []client.Object{pod(unscheduled)}, nil},
		"scheduling: without a word":        {deployment(), []client.Object{pod(refusedByScheduler(""))}, nil},
		"volume: a ConfigMap is missing":    {deployment(), []client.Object{creating, event(creating, 1, "FailedMount", `MountVolume.SetUp failed for volume "etc" : configmap "web" not found`), event(creating, 3, "FailedMount", "Unable to attach or mount volumes: unmounted volumes=[etc], unattached volumes=[b a]")}, nil},
		"volume: only the summary is left":  {deployment(), []client.Object{creating, event(creating, 3, "FailedMount", "Unable to attach or mount volumes: unmounted volumes=[etc]: timed out")}, nil},
		"volume: attached elsewhere":        {deployment(), []client.Object{creating, event(creating, 3, "FailedMount", "later"), event(creating, 2, "FailedAttachVolume", `Multi-Attach error for volume "pvc-11111111-2222-3333-4444-555555555555"`)}, nil},
		"network: no address":               {deployment(), []client.Object{creating, event(creating, 1, "FailedCreatePodSandBox", cni)}, nil},
		"start: after its init container":   {deployment(), []client.Object{afterInit, event(afterInit, 1, "FailedMount", "of before")}, nil},
		"start: beside one that runs":       {deployment(), []client.Object{besideOne, event(besideOne, 1, "FailedMount", "of before")}, nil},
		"start: once more":                  {deployment(), []client.Object{onceMore, event(onceMore, 1, "FailedMount", "of before")}, nil},
		"start: nothing is wrong yet":       {deployment(), []client.Object{creating, normal(event(creating, 1, "Pulling", "Pulling image"))}, nil},
		"init: still runs":                  {deployment(), []client.Object{pod(initializing, sidecar)}, nil},
		"probe: fails":                      {deployment(), []client.Object{unready, event(unready, 2, "Unhealthy", "Readiness probe failed: dial tcp 10.1.0.5:8080: connect: connection refused"), event(unready, 9, "BackOff", "something else")}, nil},
		"probe: two failures take turns":    {deployment(), []client.Object{unready, until(event(unready, 2, "Unhealthy", "Readiness probe failed: the earlier"), 80), until(event(unready, 3, "Unhealthy", "Readiness probe failed: the later"), 70)}, nil},
		"probe: event of events.k8s.io":     {deployment(), []client.Object{unready, series(event(unready, 2, "Unhealthy", "Readiness probe failed: the earlier")), series(event(unready, 3, "Unhealthy", "Readiness probe failed: the later"))}, nil},
		"probe: two as old as each other":   {deployment(), []client.Object{unready, event(unready, 2, "Unhealthy", "Readiness probe failed: the first by name"), named2}, nil},
		"probe: the later of two":           {deployment(), []client.Object{unready, event(unready, 9, "Unhealthy", "Readiness probe failed: the earlier"), event(unready, 10, "Unhealthy", "Readiness probe failed: the later")}, nil},
		"probe: beside one that is ready":   {deployment(), []client.Object{beside}, nil},
		"probe: not asked yet":              {deployment(), []client.Object{unready}, nil},
	}
}

func workloads() map[string]situation {
	past := says(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", `ReplicaSet "web-2" has timed out progressing.`)
	quota := says(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate", `pods "web-2-x8k2p" `+quotaRefusal)
	rolling := says(appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated", `ReplicaSet "web-2" is progressing.`)
	crashed := looping(2, "Error", "no config")
	isReady := corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, State: runs}}}
	evicted := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}
	outOfTime, imageless := containers(container(ends(137, "Error", ""), noState)), waitingFor("ErrImagePull", "not found")
	for _, status := range []*corev1.PodStatus{&outOfTime, &imageless} {
		status.Phase, status.Reason, status.Message = corev1.PodFailed, "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
	}
	limited := func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(90)) }
	attempt := containers(container(ends(1, "Error", ""), noState))
	attempt.Phase = corev1.PodFailed
	logs := map[string]string{"web-2/main": "the second attempt\n", "web-1/main": "the first attempt\n"}
	tries := []client.Object{pod(attempt, named("web-1", 1), never), pod(attempt, named("web-2", 2), never)}
	halfDone := containers(container(ends(0, "Completed", ""), noState), corev1.ContainerStatus{Name: "proxy", State: runs, Ready: true})
	late := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded", Message: "Pod was active too long"}
	evictedBoth := evicted
	evictedBoth.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}, {Name: "proxy"}}
	replicas := replicaSet()
	set, daemon, running := statefulSet(0), daemonSet(0), job()
	going := deployment(func(d *appsv1.Deployment) { d.DeletionTimestamp, d.Finalizers = new(at(1)), []string{"x/y"} })
	parallel, unselected := job(), job()
	parallel.Spec.Parallelism, unselected.Spec.Selector = new(int32(2)), nil
	bare := statefulSet(0)
	bare.Spec.Replicas = nil
	unseen := deployment()
	unseen.Generation = 2
	paused := deployment()
	paused.Spec.Paused, paused.Status.UpdatedReplicas = true, 0
	suspended := job()
	unseenEver := deployment(func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{} })
	ending := deployment(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) })
	suspended.Spec.Suspend = new(true)
	return map[string]situation{
		"quota: a Deployment":                  {deployment(quota), []client.Object{pod(isReady)}, nil},
		"quota: a StatefulSet":                 {set, []client.Object{event(set, 1, "FailedCreate", `create Pod web-0 in StatefulSet web failed error: pods "web-0" `+quotaRefusal)}, nil},
		"quota: a DaemonSet":                   {daemon, []client.Object{event(daemon, 1, "FailedCreate", `Error creating: pods "web-abcde" `+quotaRefusal)}, nil},
		"admission: a Job, by a webhook":       {running, []client.Object{event(running, 1, "FailedCreate", `Error creating: admission webhook "images.example" denied the request: latest is not allowed`)}, nil},
		"account: a StatefulSet's is missing":  {set, []client.Object{event(set, 1, "FailedCreate", `create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: error looking up service account team/web: serviceaccount "web" not found`)}, nil},
		"quota: replicas not written":          {bare, []client.Object{event(bare, 1, "FailedCreate", `create Pod web-0 in StatefulSet web failed error: pods "web-0" `+quotaRefusal)}, nil},
		"deadline: with a culprit":             {deployment(past), []client.Object{pod(crashed, of("web-2"))}, nil},
		"deadline: without one":                {deployment(past), nil, nil},
		"rollout: the old pods crash":          {deployment(rolling), []client.Object{pod(crashed, of("web-1"), named("web-1-a", 9)), pod(waitingFor("ContainerCreating", ""), of("web-2"))}, nil},
		"rollout: the new pods crash":          {deployment(rolling), []client.Object{pod(waitingFor("ErrImagePull", "gone"), of("web-1"), named("web-1-a", 9)), pod(crashed, of("web-2"))}, nil},
		"rollout: newest pods, none named":     {deployment(), []client.Object{pod(waitingFor("ErrImagePull", "gone"), of("web-1")), pod(crashed, of("web-2"), named("web-2-a", 3))}, nil},
		"rollout: old pods of a DaemonSet":     {daemonSet(2), []client.Object{pod(crashed, ofRevision("old"), named("web-a", 1)), pod(waitingFor("ErrImagePull", "gone"), ofRevision("new"), named("web-b", 2))}, nil},
		"rollout: pods of a like name":         {deployment(says(appsv1.DeploymentProgressing, corev1.ConditionTrue, "Other", `ReplicaSet "api-2" is progressing.`)), []client.Object{pod(crashed, of("web-2"))}, nil},
		"rollout: pods that are going":         {deployment(), []client.Object{pod(crashed, func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = new(at(1)), []string{"x/y"} })}, nil},
		"rollout: evicted and replaced":        {deployment(), []client.Object{pod(evicted)}, nil},
		"rollout: the change is not seen":      {unseen, []client.Object{pod(crashed)}, nil},
		"rollout: not seen at all":             {unseenEver, []client.Object{pod(crashed)}, nil},
		"rollout: down to zero":                {ending, []client.Object{pod(crashed)}, nil},
		"rollout: being deleted":               {going, []client.Object{pod(crashed)}, nil},
		"quota: the second pod of a DaemonSet": {daemon, []client.Object{pod(isReady), event(daemon, 1, "FailedCreate", `Error creating: pods "web-abcde" `+quotaRefusal)}, nil},
		"quota: the second pod of a Job":       {parallel, []client.Object{pod(isReady, never), event(parallel, 1, "FailedCreate", `Error creating: pods "web-abcde" `+quotaRefusal)}, nil},
		"quota: overcome":                      {set, []client.Object{pod(isReady, named("web-0", 1)), pod(isReady, named("web-1", 2)), event(set, 1, "FailedCreate", `create Pod web-0 in StatefulSet web failed error: pods "web-0" `+quotaRefusal)}, nil},
		"quota: a ReplicaSet says it itself":   {replicas, []client.Object{event(replicas, 1, "FailedCreate", `Error creating: pods "web-2-abcde" `+quotaRefusal)}, nil},
		"rollout: pods of a ReplicaSet crash":  {replicas, []client.Object{pod(crashed)}, nil},
		"job: one of its containers is done":   {running, []client.Object{pod(halfDone, never)}, nil},
		"job: out of time without a limit":     {running, []client.Object{pod(late, never)}, nil},
		"job: all its containers were evicted": {running, []client.Object{pod(evictedBoth, never)}, nil},
		"job: without a selector":              {unselected, []client.Object{pod(crashed, never)}, nil},
		"rollout: paused":                      {paused, nil, nil},
		"another team's pod":                   {deployment(), []client.Object{pod(crashed, func(p *corev1.Pod) { p.Namespace = "other" })}, nil},
		"job: out of tries":                    {jobFailed("BackoffLimitExceeded", "Job has reached the specified backoff limit"), tries, logs},
		"job: past its deadline, its pod gone": {jobFailed("DeadlineExceeded", "Job was active longer than specified deadline"), nil, nil},
		"job: fails and tries again":           {running, tries, logs},
		"job: its pod was evicted":             {running, []client.Object{pod(evicted, never)}, nil},
		"job: evicted within its time":         {running, []client.Object{pod(evicted, never, limited)}, nil},
		"job: two pods as old as each other":   {running, []client.Object{pod(attempt, named("web-1", 1), never), pod(attempt, named("web-2", 1), never)}, logs},
		"job: its pod was out of time":         {jobFailed("BackoffLimitExceeded", "Job has reached the specified backoff limit"), []client.Object{pod(outOfTime, never, limited)}, map[string]string{"web-1/main": "step 1 of 2\n"}},
		"job: out of time, without its image":  {jobFailed("BackoffLimitExceeded", "Job has reached the specified backoff limit"), []client.Object{pod(imageless, never, limited)}, nil},
		"job: runs":                            {running, []client.Object{pod(isReady, never)}, nil},
		"job: suspended":                       {suspended, nil, nil},
	}
}

func others() map[string]situation {
	data, lb, unknown := claim(), service(nil), claim()
	unknown.UID = ""
	alone := pod(func() corev1.PodStatus {
		s := containers(container(ends(3, "Error", ""), noState))
		s.Phase = corev1.PodFailed
		return s
	}(), named("web", 0), never)
	unscheduled := pod(refusedByScheduler("0/1 nodes are available: 1 node(s) had untolerated taint."), named("web", 0))
	return map[string]situation{
		"claim: no storage class":           {data, []client.Object{normal(event(data, 1, "FailedBinding", "no persistent volumes available for this claim and no storage class is set"))}, nil},
		"claim: the provisioner fails":      {data, []client.Object{event(data, 1, "ProvisioningFailed", `storageclass.storage.k8s.io "fast" not found`), normal(event(data, 5, "ExternalProvisioning", "Waiting for a volume to be created"))}, nil},
		"claim: nobody uses it":             {data, []client.Object{normal(event(data, 1, "WaitForFirstConsumer", "waiting for first consumer to be created before binding"))}, nil},
		"claim: a volume that does not fit": {data, []client.Object{event(data, 1, "VolumeMismatch", "the volume is too small")}, nil},
		"claim: waits for its pod":          {data, []client.Object{normal(event(data, 1, "WaitForPodScheduled", "waiting for pod web-0 to be scheduled")), normal(event(data, 2, "WaitForFirstConsumer", "waiting"))}, nil},
		"claim: without a word":             {data, nil, nil},
		"load balancer: refused":            {lb, []client.Object{event(lb, 1, "SyncLoadBalancerFailed", "Error syncing load balancer: out of addresses")}, nil},
		"load balancer: nobody makes one":   {lb, nil, nil},
		"claim: not identified":             {unknown, []client.Object{event(unknown, 1, "ProvisioningFailed", "of another claim")}, nil},
		"pod: runs and is not ready":        {pod(corev1.PodStatus{Phase: corev1.PodRunning}, named("web", 0)), nil, nil},
		"pod: failed":                       {alone, nil, map[string]string{"web/main": "1 of 7 checks failed\n"}},
		"pod: not scheduled":                {unscheduled, nil, nil},
		"pod: its image is not there":       {pod(waitingFor("ErrImagePull", "not found"), named("web", 0), never), nil, nil},
	}
}

// The golden file is every message there is, in one place to read.
func TestEveryMessageIsInTheGoldenFile(t *testing.T) {
	all := situations()
	var got strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		w := &world{objects: append(slices.Clone(s.beside), s.of), logs: s.logs}
		v, err := Look(t.Context(), w.explainer(t), watch(t, s.of), []Ref{refTo(s.of)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if w.asked["Get"] > 0 || w.asked["PodList"] > 1 || w.asked["EventList"] > 1 || w.asked["Logs"] > 1 {
			t.Errorf("%s: asked %v", name, w.asked)
		}
		verdict := "waiting"
		if len(v.Failed) > 0 {
			verdict = "failed"
		}
		if v.Final {
			verdict = "final"
		}
		if v.Healthy() {
			verdict = "healthy"
		}
		got.WriteString(strings.TrimSpace(fmt.Sprintf("%-42s %-7s %s", name, verdict, v)) + "\n")
	}
	const file = "testdata/messages.golden"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestAPodThatCannotBeReadIsAnError(t *testing.T) {
	o := object("v1", "Pod", "")
	o.Object["status"] = "odd"
	if _, err := (Explainer{}).cause(t.Context(), o); err == nil || !strings.Contains(err.Error(), "reading its status") {
		t.Errorf("got %v", err)
	}
}
