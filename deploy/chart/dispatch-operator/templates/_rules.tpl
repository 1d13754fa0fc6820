{{/* What the operator does in each namespace that it serves. tests/chart/test_rights.py holds this list to what is used. */}}
{{- define "dispatch-operator.rules" -}}
# What it is asked for. Of these objects only the status is written.
- apiGroups: [dispatch.phpboyscout.uk]
  resources: [dispatchstarts, dispatchbackends]
  verbs: [get, list, watch]
- apiGroups: [dispatch.phpboyscout.uk]
  resources: [dispatchstarts/status]
  verbs: [patch]
# The copy of the runtime, and the TrainJob: made, given an owner, opened and held, and removed after a refusal.
- apiGroups: [trainer.kubeflow.org]
  resources: [trainingruntimes, trainjobs]
  verbs: [get, list, watch, create, patch, delete]
# Restarts are counted there.
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [list, watch]
# Why a job failed.
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
# Why nothing runs; and the story of each DispatchStart, for `kubectl describe`.
- apiGroups: [""]
  resources: [events]
  verbs: [list, create]
{{- end -}}

{{/* What has no namespace: runtimes to copy. */}}
{{- define "dispatch-operator.clusterRules" -}}
- apiGroups: [trainer.kubeflow.org]
  resources: [clustertrainingruntimes]
  verbs: [get, list, watch]
{{- end -}}
