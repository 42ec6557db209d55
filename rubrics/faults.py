"""Which planted faults a dimension of the shipped rubrics is to notice: the exam calls it blind to these alone.

It follows from what the rubric's prompt says the dimension is about, read by a person, and from nothing measured. It does not
stand in rubric.toml because it is no part of the instrument: a rubric's digest names what was asked and how it is read, and
backfills and readings go by it. Of rubrics of one's own the benchmark file says it ([exam] meant).
"""

from collections.abc import Mapping, Sequence

from schemas.benchmark.exam import PlantedFault

_F = PlantedFault
_OF_PROMPT = (_F.SWAPPED_PROMPT, _F.MISSPELT_TEXT, _F.WRONG_COUNT, _F.MIRRORED, _F.RECOLOURED, _F.ERASED, _F.DOUBLED)
"""What is held against the prompt; sides and colours are changed where one is said."""

MEANT: Mapping[str, Mapping[str, Sequence[PlantedFault]]] = {
    "alignment": {"score": _OF_PROMPT},
    "image_aspects": {
        "accuracy_to_prompt": _OF_PROMPT,
        "creativity_and_originality": (),
        "visual_quality_and_realism": (_F.BLURRED,),
        "consistency_and_cohesion": (),
        "emotional_or_thematic_resonance": (_F.SWAPPED_PROMPT,),
        "overall_score": (_F.SWAPPED_PROMPT, _F.BLURRED),
    },
    "composition": {
        "object_completeness": (_F.SWAPPED_PROMPT, _F.ERASED),
        "detectability": (_F.SWAPPED_PROMPT, _F.ERASED, _F.BLURRED),
        "separation_clarity": (_F.SWAPPED_PROMPT, _F.ERASED),
        "individual_completeness": (_F.SWAPPED_PROMPT, _F.ERASED),
        "relationship_accuracy": (_F.SWAPPED_PROMPT, _F.ERASED),
        "count_accuracy": (_F.SWAPPED_PROMPT, _F.WRONG_COUNT, _F.ERASED, _F.DOUBLED),
        "color_fidelity": (_F.SWAPPED_PROMPT, _F.RECOLOURED),
        "position_accuracy": (_F.SWAPPED_PROMPT, _F.MIRRORED, _F.ERASED),
        "attribute_binding": (_F.SWAPPED_PROMPT, _F.RECOLOURED),
        "occlusion_handling": (), "object_uniformity": (), "spatial_legibility": (), "contrast_effectiveness": (),
        "multi_object_consistency": (), "occlusion_management": (), "perspective_consistency": (), "material_consistency": (),
        "overall_score": (_F.SWAPPED_PROMPT,),
    },
    "interleaved": {
        "text_response_quality": (_F.SWAPPED_PROMPT,),
        "image_response_quality": (_F.SWAPPED_PROMPT, _F.BLURRED, _F.ERASED),
        "image_aesthetic_quality": (_F.BLURRED,),
        "text_image_synergy": (_F.ERASED, _F.MIRRORED, _F.RECOLOURED),
    },
    "caption": {"score": (_F.ERASED, _F.MIRRORED, _F.RECOLOURED)},
}  # fmt: skip


def meant_for(rubric_id: str, dimension: str, fault: PlantedFault, declared: Mapping[str, Sequence[PlantedFault]]) -> bool | None:
    """Whether the dimension is to notice the fault: as the benchmark file declares, else as is said above; None: neither says.

    `declared` goes by "rubric.dimension", which goes before "dimension".
    """
    shipped = MEANT.get(rubric_id, {}).get(dimension)
    found = declared.get(f"{rubric_id}.{dimension}", declared.get(dimension, shipped))
    return None if found is None else fault in found
