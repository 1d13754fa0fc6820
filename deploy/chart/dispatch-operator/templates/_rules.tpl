{{/* What the operator does in each namespace that it serves. tests/chart/test_rights.py holds this list to what is used. */}}
{{- define "dispatch-operator.rules" -}}
# What it is asked for. Of these objects only the status is written.
- apiGroups: [dispatch.phpboyscout.uk]
  resources: [dispatchstarts, dispatchbackends]
  verbs: [get, list, watch]
- apiGroups: [dispatch.phpboyscout.uk]
  resources: [dispatchstarts/status, dispatchbackends/status]
  verbs: [patch]
# The copy of the runtime, and the TrainJob: made, given an owner, opened and held, and removed after a refusal.
- apiGroups: [trainer.kubeflow.org]
  resources: [trainingruntimes, trainjobs]
  verbs: [get, list, watch, create, patch, delete]
# Restarts are counted there.
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [list, watch]
# Why a job failed, or does not run; and how many of its pods do.
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get]
# Why a job does not run; and the story of each DispatchStart, for `kubectl describe`, where what is told again is counted.
- apiGroups: [""]
  resources: [events]
  verbs: [list, create, patch]
{{- if .Values.kueue.enabled }}
# Kueue, where it is installed: whether the gate and the admission check are in place, why a job waits, and holding it.
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [get, list, watch, patch]
# Why they are not in place.
- apiGroups: [kueue.x-k8s.io]
  resources: [localqueues]
  verbs: [get]
{{- end }}
{{- end -}}

{{/* What has no namespace: runtimes to copy, and what of Kueue's set-up keeps a job from being gated. */}}
{{- define "dispatch-operator.clusterRules" -}}
- apiGroups: [trainer.kubeflow.org]
  resources: [clustertrainingruntimes]
  verbs: [get, list, watch]
{{- if .Values.kueue.enabled }}
- apiGroups: [kueue.x-k8s.io]
  resources: [clusterqueues, admissionchecks, workloadpriorityclasses]
  verbs: [get]
{{- end }}
{{- with .Values.namespaces }}
# Whether they exist: it is no fault when one of them does not.
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [{{ join ", " . }}]
  verbs: [get]
{{- end }}
{{- end -}}

{{/* What only an operator for the whole cluster does: it is the controller of its AdmissionChecks. */}}
{{- define "dispatch-operator.checkRules" -}}
- apiGroups: [kueue.x-k8s.io]
  resources: [admissionchecks]
  verbs: [list, watch]
# That it works, and its word on each Workload that lists it.
- apiGroups: [kueue.x-k8s.io]
  resources: [admissionchecks/status, workloads/status]
  verbs: [patch]
{{- end -}}
