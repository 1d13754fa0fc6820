"""API groups, and every label, annotation and name that others see: one place, a sentence each where it needs one.

The values are binding (`docs/contract.md`, Names, labels and annotations); a test holds the page to this file.
"""

GROUP = "dispatch.phpboyscout.uk"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

TRAINER_GROUP = "trainer.kubeflow.org"
TRAINER_VERSION = "v1alpha1"
TRAINER_API_VERSION = f"{TRAINER_GROUP}/{TRAINER_VERSION}"

# Labels and annotations (docs/contract.md, Names, labels and annotations).
LABEL_JOB = f"{GROUP}/job-id"
LABEL_SUBMISSION = f"{GROUP}/submission"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "dispatch-operator"
LABEL_PROBE = f"{GROUP}/probe"
ANNOTATION_COMMENT = f"{GROUP}/comment"
ANNOTATION_START = f"{GROUP}/start"
ANNOTATION_START_UID = f"{GROUP}/start-uid"
ANNOTATION_SOURCE = f"{GROUP}/source"
ANNOTATION_BACKEND = f"{GROUP}/backend"
ANNOTATION_HELD = f"{GROUP}/held"
"""On a Workload that we hold: the generation of the DispatchStart that wanted it."""
LABEL_FRAMEWORK = f"{TRAINER_GROUP}/framework"
"""By which the Kubeflow SDK knows a runtime; without it the SDK can list no job of the namespace."""
LABEL_QUEUE = "kueue.x-k8s.io/queue-name"
LABEL_PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
ANNOTATION_GATED_BY = "kueue.x-k8s.io/admission-gated-by"
START_GATE = f"{GROUP}/start-gate"
CHECK_CONTROLLER = f"{GROUP}/start"

PATCH_MANAGER = f"{GROUP}/operator"
TRAINJOB_CONTROLLER = f"{TRAINER_GROUP}/trainjob-controller"
ANCESTOR_LABEL = f"{TRAINER_GROUP}/trainjob-ancestor-step"
TRAINER_STEP = "trainer"
NODE = "node"
"""The trainer's replicated job and its container, as Trainer's rendezvous addresses assume them."""
KUEUE_GROUP = "kueue.x-k8s.io"
KUEUE_VERSION = "v1beta2"
KUEUE_API_VERSION = f"{KUEUE_GROUP}/{KUEUE_VERSION}"
LABEL_JOB_UID = f"{KUEUE_GROUP}/job-uid"
JOBSET_GROUP = "jobset.x-k8s.io"
JOBSET_VERSION = "v1alpha2"
JOBSET_API_VERSION = f"{JOBSET_GROUP}/{JOBSET_VERSION}"
LABEL_REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
LABEL_RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"

# What the job's container sees of dispatch (docs/contract.md, Environment of the job).
DISPATCH_ENV = "DISPATCH_"
PODINFO_VOLUME = "dispatch-podinfo"
PODINFO_PATH = "/var/run/dispatch"
